"""Prints the figures of an eval.json as the tables of a model card: python3 card.py FOLDER/eval.json"""
import json
import sys


def _percent(share):
    return "" if share is None else f"{100 * share:.1f} %"


def _row(*cells):
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def _table(head, rows):
    return "\n".join([_row(*head), "|" + "---|" * len(head), *(_row(*row) for row in rows)]) + "\n"


def _shares(head, groups):
    between = lambda s: " to ".join(f"{100 * bound:.0f}" for bound in s["interval"]) if s["count"] else ""  # noqa: E731
    rows = [(name, s["count"], _percent(s["exact"]), between(s)) for name, s in groups.items()]
    return _table([head, "edits", "exact", "95 % interval"], rows)


def tables(found):
    edits, programs = found["edits"], found["copy_programs"]
    several = {"all": edits["all"], "long files": edits["long"], "one edit": edits["one_edit"], "two to four": edits["several_edits"]}
    yield _shares("edits", several)
    yield _shares("characters of the old file", edits["by_characters"])
    yield _shares("changed part of the file", edits["by_edit_ratio"])
    kinds = sorted(edits["by_kind_small_files"].items(), key=lambda kind: -(kind[1]["exact"] or 0))
    yield "By kind: " + ", ".join(f"{name} {100 * (s['exact'] or 0):.0f} %" for name, s in kinds) + ".\n"
    yield _table(
        ["copy programs", "count", "valid", "right file", "as the shortest program"],
        [
            ("as text", programs["count"], _percent(programs["valid"]), _percent(programs["right_file"]), _percent(programs["exact"])),
            ("as served", programs["count"], _percent(programs["masked_valid"]), _percent(programs["masked_right_file"]), ""),
        ],
    )
    rows = [
        (half, kind, *(counts[kind].get(what, 0) for what in ("right", "unchanged", "harm")))
        for half, counts in found["hand_edits"].items()
        for kind in counts
    ]
    yield _table(["requests written by hand", "kind", "right", "file unchanged", "harm"], rows)
    line, agreement = found["next_line"], found["draft_agreement"]
    yield (
        f"Next line of plain code: {_percent(line['exact'])} of {line['count']}. The draft's best token is the target's at "
        f"{_percent(agreement['all'])} of {agreement['tokens']} tokens of its answers, at {_percent(agreement['at_changes'])} of the "
        f"{agreement['changed_tokens']} where the answer leaves the old file.\n"
    )


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        print("\n".join(tables(json.load(file))))
