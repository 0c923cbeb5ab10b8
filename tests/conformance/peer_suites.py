"""Other servers' own tests against Redline: llama.cpp's `tools/server/tests` and vLLM's `tests/entrypoints/openai`.
Their files are copied, with assertions that do not end a test, and they start `redline serve` in place of their
server."""

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

from probe import most_frequent, table
from soften import rewrite

HERE = Path(__file__).resolve().parent
SUITE_SECONDS_MAX = 900


def find_llama(folder):
    places = [folder, *folder.glob("tools/server/tests"), *folder.glob("*/tools/server/tests")]
    return [place for place in places if (place / "utils.py").is_file() and (place / "unit").is_dir()]


def find_vllm(folder):
    return [f for pattern in ("tests", "*/tests") for f in folder.glob(pattern)
            if (f / "entrypoints" / "openai").is_dir()]


def copy_soft(path, to):
    to.parent.mkdir(parents=True, exist_ok=True)
    to.write_text(rewrite(path.read_text(encoding="utf-8")), encoding="utf-8")


def run_file(file, work, environment, plugins):
    """Returns pytest's report of one file, or why it cannot be run."""
    notes = work / "report.json"
    notes.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--timeout", "90"]
    for plugin in plugins:
        command += ["-p", plugin]
    try:
        done = subprocess.run([*command, str(file)], cwd=work, capture_output=True, text=True, timeout=SUITE_SECONDS_MAX,
                              env={**os.environ, **environment, "REDLINE_REPORT": str(notes),
                                   "PYTHONPATH": f"{HERE / 'peers'}"})
        said = (done.stdout + done.stderr).strip().splitlines()
    except subprocess.TimeoutExpired:
        said = [f"took more than {SUITE_SECONDS_MAX} s"]
    if notes.is_file():
        found = json.loads(notes.read_text(encoding="utf-8"))
        if found:
            return found, ""
    errors = [line for line in said if line.startswith("E ")]
    return [], (errors or said or ["no test"])[-1].strip()[:160]


def print_suites(title, suites):
    """suites: notes by name."""
    rows, reasons, not_run = [], Counter(), []
    total = Counter()
    for name, (notes, why_not) in suites.items():
        if not notes:
            not_run.append(f"- {name}: {why_not}")
            continue
        passed = sum(one["outcome"] == "passed" for one in notes)
        skipped = sum(one["outcome"] == "skipped" for one in notes)
        failed = [one for one in notes if one["outcome"] == "failed"]
        refused = sum(bool(one["refusals"]) for one in failed)
        checks = sum(one["checks"] for one in notes)
        rows.append([name, passed, refused, len(failed) - refused, skipped, checks])
        for column, count in zip("prfsc", rows[-1][1:]):
            total[column] += count
        for one in failed:
            file, test = one["test"].split("::", 1)
            reasons[f"{Path(file).stem}::{test}: {(one['refusals'] or [one['first']])[0]}"[:220]] += 1
    rows.append(["**sum**", *(f"**{total[column]}**" for column in "prfsc")])
    print(f"## {title}\n")
    print(table(["suite", "passed", "refused by name", "failed otherwise", "skipped", "assertions"], rows))
    if reasons:
        print("\nFirst of what failed in each test:\n" + most_frequent(reasons, 400))
    if not_run:
        print("\nNot run:\n" + "\n".join(not_run))
    return total


def run_llama(folder, work, environment, only):
    work = work / "llama.cpp" / "tools" / "server" / "tests"
    shutil.rmtree(work, ignore_errors=True)
    templates = folder.parents[2] / "models"
    if templates.is_dir():
        link = work.parents[2] / "models"
        link.parent.mkdir(parents=True, exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(templates)
    copy_soft(folder / "utils.py", work / "utils.py")
    if (folder / "conftest.py").is_file():
        copy_soft(folder / "conftest.py", work / "conftest.py")
    suites = {}
    for path in sorted((folder / "unit").glob("test_*.py")):
        if only and not any(name in path.stem for name in only):
            continue
        copy_soft(path, work / "unit" / path.name)
        suites[path.stem] = run_file(
            Path("unit") / path.name, work,
            {**environment, "LLAMA_SERVER_BIN_PATH": str(HERE / "peers" / "serve.py"), "PORT": environment["REDLINE_PORT"]},
            ["soft_asserts", "stand_ins"])
    return print_suites("llama.cpp's server tests", suites)


def run_vllm(folder, work, environment, only):
    work = work / "vllm"
    shutil.rmtree(work, ignore_errors=True)
    (work / "tests").mkdir(parents=True)
    shutil.copy(HERE / "peers" / "vllm_server.py", work / "tests" / "utils.py")
    files = [path for part in ("entrypoints/openai", "entrypoints/anthropic", "tool_use")
             for path in sorted((folder / part).rglob("*.py"))]
    for path in files:
        copy_soft(path, work / "tests" / path.relative_to(folder))
    for place in {p for f in files for p in (work / "tests" / f.relative_to(folder)).parents if p.is_relative_to(work)}:
        (place / "__init__.py").touch()
    suites = {}
    for path in files:
        is_of_server = "RemoteOpenAIServer" in path.read_text(encoding="utf-8") or "client" in path.read_text()
        if not path.name.startswith("test_") or not is_of_server or (only and not any(n in path.stem for n in only)):
            continue
        suites[path.stem] = run_file(Path("tests") / path.relative_to(folder), work, environment,
                                     ["soft_asserts", "stand_ins", "pytest_asyncio"])
    return print_suites("vLLM's server tests", suites)
