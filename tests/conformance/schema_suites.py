"""Suites of JSON schemas with valid and invalid instances: JSON-Schema-Test-Suite, JSONSchemaBench (maskbench) and
SchemaStore's tests.

A grammar is right when it accepts valid instances and refuses invalid ones. A grammar that refuses valid instances is
narrow, which the documentation may mention; one that accepts an invalid instance breaks the promise of structured
output.
"""

import json
import re
from collections import Counter
from pathlib import Path

from probe import most_frequent, table


def spellings(instance):
    """Without whitespace, with that of most writers, and with everything beyond ASCII escaped."""
    forms = [json.dumps(instance, separators=(",", ":"), ensure_ascii=False),
             json.dumps(instance, ensure_ascii=False), json.dumps(instance, separators=(",", ":"))]
    return list(dict.fromkeys(form for form in forms if is_text(form)))


def is_text(form):
    try:
        form.encode()
        return True
    except UnicodeEncodeError:  # a lone surrogate
        return False


def reason(why):
    """Returns a refusal without what is specific to one schema, so that equal reasons are counted together."""
    text = why.split(": ", 1)[-1]
    if "keyword" not in text:
        text = re.sub(r"'[^']*'", "'...'", text)
    return re.sub(r"\d+", "N", text)[:110]


class Tally:
    def __init__(self):
        self.schemas = self.compiled = self.right = 0
        self.valid = self.accepted_all = self.accepted_some = self.invalid = self.wrong = self.wrong_schemas = 0
        self.us = []
        self.reasons = Counter()
        self.wrong_names = []

    def add(self, probe, name, schema, tests):
        """tests: pairs of (instance, whether it is valid)."""
        self.schemas += 1
        texts = [spellings(instance) for instance, _ in tests]
        if isinstance(schema, dict):
            schema = {**schema, **probe.of_schemas}
        said = probe.ask({"schema": schema, "texts": [form for forms in texts for form in forms]})
        if "why" in said:
            self.reasons[reason(said["why"])] += 1
            return
        self.compiled += 1
        self.us.append(said["us"])
        accepted = iter(said["accepted"])
        is_right = True
        wrong_before = self.wrong
        for (_, is_valid), forms in zip(tests, texts):
            taken = [next(accepted) for _ in forms]
            if is_valid:
                self.valid += 1
                self.accepted_all += all(taken)
                self.accepted_some += any(taken)
                is_right = is_right and all(taken)
            else:
                self.invalid += 1
                self.wrong += any(taken)
                is_right = is_right and not any(taken)
        self.right += is_right
        if self.wrong > wrong_before:
            self.wrong_schemas += 1
            self.wrong_names.append(name)

    def __iadd__(self, other):
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)
        return self

    def microseconds(self):
        times = sorted(self.us)
        at = lambda share: times[min(len(times) - 1, int(len(times) * share))]
        return f"{at(0.5)} / {at(0.99)} / {times[-1]}" if times else "-"


def failures(total):
    lines = []
    if total.wrong_names:
        lines += ["", f"Schemas whose grammar accepts an invalid instance: {len(total.wrong_names)}"]
        lines += [f"- {name}" for name in total.wrong_names[:40]]
    if total.reasons:
        lines += ["", "Schemas refused, by reason:", most_frequent(total.reasons)]
    return "\n".join(lines)


# JSON-Schema-Test-Suite


def find_test_suite(folder):
    return [f for f in [folder, *folder.glob("*"), *folder.glob("*/*")] if (f / "tests" / "draft2020-12").is_dir()]


def groups_of(folder):
    for path in sorted(folder.glob("*.json")):
        for group in json.loads(path.read_text(encoding="utf-8")):
            tests = [(test["data"], test["valid"]) for test in group["tests"]]
            yield f"{path.stem}: {group['description']}", path.stem, group["schema"], tests


def run_test_suite(probe, folder):
    rows, total = [], Tally()
    formats = {}
    for draft in ("draft2020-12", "draft7"):
        base = folder / "tests" / draft
        for kind, where in (("required", base), ("optional", base / "optional"),
                            ("format, without a type", base / "optional" / "format")):
            tally = Tally()
            for name, _, schema, tests in groups_of(where):
                tally.add(probe, f"{draft} {name}", schema, tests)
            if tally.schemas == 0:
                continue
            rows.append([f"{draft} {kind}", tally.schemas, tally.compiled,
                         f"{tally.accepted_all} / {tally.accepted_some} of {tally.valid}", tally.invalid,
                         f"**{tally.wrong}**"])
            if not kind.startswith("format"):  # most validators treat a format as an annotation
                total += tally
        for _, stem, schema, tests in groups_of(base / "optional" / "format"):
            if isinstance(schema, dict):
                texts = [(instance, is_valid) for instance, is_valid in tests if isinstance(instance, str)]
                formats.setdefault(stem, Tally()).add(probe, stem, {**schema, "type": "string"}, texts)
    print("## JSON-Schema-Test-Suite\n")
    print(table(["suite", "schemas", "compile", "valid accepted (in all spellings / in some)", "invalid",
                 "of these ACCEPTED"], rows))
    print(failures(total))
    if formats:
        print("\nFormats of strings:\n")
        print(table(["format", "valid accepted", "invalid refused"],
                    [[name, f"{t.accepted_all}/{t.valid}", f"{t.invalid - t.wrong}/{t.invalid}"] if t.compiled else
                     [name, "refused", ""] for name, t in sorted(formats.items())]))
    return total


# JSONSchemaBench with the instances of maskbench


def find_maskbench(folder):
    return [f for f in [folder / "maskbench" / "data", *folder.glob("*/maskbench/data")] if f.is_dir()]


def set_of(path):
    name = path.stem.split("---")[0]
    return re.sub(r"_?\d+$", "", name) if "---" not in path.stem else name


def run_maskbench(probe, folder, limit):
    tallies = {}
    for number, path in enumerate(sorted(folder.glob("*.json"))):
        if limit and number % limit:
            continue
        case = json.loads(path.read_text(encoding="utf-8"))
        tests = [(test["data"], test["valid"]) for test in case.get("tests", [])]
        tallies.setdefault(set_of(path), Tally()).add(probe, path.stem, case["schema"], tests)
    total = Tally()
    for tally in tallies.values():
        total += tally
    print("## JSONSchemaBench with the instances of maskbench\n")
    rows = [[name, t.schemas, f"{100 * t.compiled / t.schemas:.1f}%", t.right, f"{t.accepted_all}/{t.valid}",
             f"{t.wrong}/{t.invalid}" + (f" in {t.wrong_schemas} schemas" if t.wrong else ""), t.microseconds()]
            for name, t in [*sorted(tallies.items()), ("**all**", total)] if t.schemas]
    print(table(["set", "schemas", "compile", "all tests right", "valid accepted", "invalid ACCEPTED",
                 "us p50 / p99 / max"], rows))
    print(failures(total))
    return total


# SchemaStore


def find_schema_store(folder):
    return [f / "src" for f in [folder, *folder.glob("*")] if (f / "src" / "schemas" / "json").is_dir()]


def instances_in(folder):
    for path in sorted(folder.glob("*.json")):
        try:
            yield json.loads(path.read_text(encoding="utf-8"))
        except ValueError:  # JSON with comments
            continue


def run_schema_store(probe, folder):
    """The schemas that have tests in JSON; those in YAML and TOML are left out."""
    total = Tally()
    for path in sorted((folder / "schemas" / "json").glob("*.json")):
        tests = [(instance, is_valid) for where, is_valid in (("test", True), ("negative_test", False))
                 for instance in instances_in(folder / where / path.stem)]
        if not tests:
            continue
        try:
            total.add(probe, path.stem, json.loads(path.read_text(encoding="utf-8")), tests)
        except ValueError:
            continue
    print("## SchemaStore\n")
    print(table(["schemas", "compile", "all tests right", "valid accepted (in all spellings / in some)",
                 "invalid ACCEPTED", "us p50 / p99 / max"],
                [[total.schemas, total.compiled, total.right, f"{total.accepted_all} / {total.accepted_some} of {total.valid}",
                  f"**{total.wrong}** of {total.invalid}", total.microseconds()]]))
    print(failures(total))
    return total
