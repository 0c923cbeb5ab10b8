"""Measures a pair on held-out packages.

Greedy decoding gives exactly the wanted answer if and only if each of its tokens is the most probable one after the
wanted text before it, so exact match needs one pass over each answer. Only what depends on the model's own text
(validity of programs, agreement of the draft model) is decoded.
"""
import difflib
from collections import defaultdict

import torch

import copy_programs
import edits
import feed
import hand_edits
import samples
from decode import Decoder
from fast_step import Batch
from python_source import NotApplicable

LONG = 2000  # characters from which a file is a long one
KNOWN_LINES_MAX = 0.3  # the largest share of an excerpt's lines that excerpts before it may have
LENGTHS = [(0, 500), (500, 1000), (1000, 2000), (2000, 3500), (3500, 6000)]  # size of the old file in characters
RATIOS = [(0, 0.02), (0.02, 0.05), (0.05, 0.1), (0.1, 0.2), (0.2, 0.6), (0.6, 1.01)]


def edit_ratio(before, after):
    """Returns the share of characters that are on changed lines."""
    old, new = before.splitlines(True), after.splitlines(True)
    blocks = difflib.SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
    kept = sum(len(line) for block in blocks for line in old[block.a : block.a + block.size])
    return 1 - kept / max(1, len(before), len(after))


def _is_new(before, seen):
    """Whether most lines of an excerpt stood in none before it; adds them to those seen."""
    lines = {line.strip() for line in before.splitlines() if len(line.strip()) > 8}
    new = len(lines & seen) <= KNOWN_LINES_MAX * len(lines)
    if new:
        seen |= lines
    return new


def draw_tasks(maker, count, low, high, context, program=False, edit_count=None, kind=None, seen=None):
    """Draws edits of files of `low` to `high` characters, each of another excerpt if a set is given for `seen`."""
    tasks, mix = [], samples.Mix(low, high, context)
    for _ in range(count * 60):
        if len(tasks) == count:
            break
        try:
            instruction, before, after, kinds = maker.edit_task(mix, edit_count, [kind] if kind else None)
        except NotApplicable:
            continue
        if seen is not None and not (low <= len(before) <= high and _is_new(before, seen)):
            continue
        message = samples.program_message if program else samples.edit_message
        if program:
            wanted = copy_programs.shortest(before, after) + "<|im_end|>"
            wanted_ids = samples.program_tokens(maker.tokenizer, before, wanted)[0]
        else:
            wanted_ids = maker.tokenizer.encode(samples.edit_answer(after) + "<|im_end|>")
        prompt = samples.chat(message(instruction, before))
        task = {
            "instruction": instruction,
            "before": before,
            "after": after,
            "kinds": kinds,
            "prompt": prompt,
            "prompt_ids": maker.tokenizer.encode(prompt),
            "wanted_ids": wanted_ids,
            "ratio": edit_ratio(before, after),
        }
        if len(task["prompt_ids"]) + len(task["wanted_ids"]) <= context:
            tasks.append(task)
    return tasks


@torch.no_grad()
def mark_exact(step, tasks):
    """Sets task["right"]: for each token of the wanted answer, whether it is the most probable one."""
    for task in tasks:
        ids = task["prompt_ids"] + task["wanted_ids"]
        count = len(task["wanted_ids"])
        row = torch.tensor(ids[:-1])
        batch = Batch(row, row, torch.ones(len(row)), torch.tensor([0, len(row)]))
        hidden = step.forward(batch)[-count:]
        task["right"] = (step.logits(hidden.contiguous()).cpu().argmax(-1) == torch.tensor(task["wanted_ids"])).tolist()
        task["exact"] = all(task["right"])


def interval(count, right):
    """Returns the bounds of a share with 95 % confidence, as Wilson has them (1927)."""
    z = 1.96
    share, scale = right / count, 1 + z * z / count
    middle = (share + z * z / (2 * count)) / scale
    half = z * (share * (1 - share) / count + z * z / (4 * count * count)) ** 0.5 / scale
    return round(max(0.0, middle - half), 4), round(min(1.0, middle + half), 4)


def _share(tasks, key="exact"):
    count, right = len(tasks), sum(t[key] for t in tasks)
    return {"count": count, "exact": round(right / count, 4), "interval": interval(count, right)} if tasks else {"count": 0, "exact": None}


def _by(tasks, ranges, value):
    return {f"{low:g}-{high:g}": _share([t for t in tasks if low <= value(t) < high]) for low, high in ranges}


def measure_edits(step, maker, size):
    context = size.target.shape.context
    seen, long = set(), size.held_out_edits // 3 if size.largest_edit > LONG else 0
    tasks = draw_tasks(maker, long, LONG, size.largest_edit, context, seen=seen) if long else []
    tasks += draw_tasks(maker, size.held_out_edits - long, 120, min(LONG, size.largest_edit), context, seen=seen)
    mark_exact(step, tasks)
    right = [r for t in tasks for r in t["right"]]
    found = {
        "all": _share(tasks),
        "long": _share([t for t in tasks if len(t["before"]) >= LONG]),
        "one_edit": _share([t for t in tasks if len(t["kinds"]) == 1]),
        "several_edits": _share([t for t in tasks if len(t["kinds"]) > 1]),
        "right_tokens": round(sum(right) / len(right), 5),
        "by_characters": _by(tasks, LENGTHS, lambda t: len(t["before"])),
        "by_edit_ratio": _by(tasks, RATIOS, lambda t: t["ratio"]),
    }
    per_kind = {}
    for kind in edits.KINDS:
        drawn = draw_tasks(
            maker, max(1, size.held_out_edits // 37), 120, min(700, size.largest_edit), context, edit_count=1, kind=kind
        )
        mark_exact(step, drawn)
        per_kind[kind] = _share(drawn)
    found["by_kind_small_files"] = per_kind
    return found


def _as_served(decoder, tokenizer, before, task, limit):
    """Decodes the answer under the grammar: a token that no program has there is refused; copied lines are read too."""

    def ended_copies(text):
        return [copied for _, copied in copy_programs.pieces(before, text) if copied]

    def allowed(answer, token):
        text = tokenizer.decode(answer)
        if token in tokenizer.stops:
            return text.endswith(copy_programs.END)
        longer = tokenizer.decode(answer + [token])
        crosses = any(
            len(ended_copies(longer[:end])) > len(ended_copies(text)) for end in range(len(text) + 1, len(longer))
        )
        return not crosses and copy_programs.is_prefix(before, longer)

    def behind(answer):
        text = tokenizer.decode(answer)
        last = copy_programs.pieces(before, text)[-1] if copy_programs.is_prefix(before, text) else ("", "")
        return tokenizer.encode_text(last[1])

    return decoder.greedy(task["prompt_ids"], limit, tokenizer.stops, allowed, behind)


def measure_programs(step, decoder, maker, size):
    context = size.target.shape.context
    tasks = draw_tasks(maker, size.held_out_programs, 120, min(1500, size.largest_edit), context, program=True)
    mark_exact(step, tasks)
    tokenizer = maker.tokenizer
    counts = defaultdict(int)
    for task in tasks:
        limit = len(task["wanted_ids"]) * 2 + 60
        before = task["before"]
        free = copy_programs.resolve(
            before, tokenizer.decode(decoder.greedy(task["prompt_ids"], limit, tokenizer.stops))
        )

        masked = copy_programs.resolve(before, tokenizer.decode(_as_served(decoder, tokenizer, before, task, limit)))
        counts["valid"] += free is not None
        counts["right_file"] += free == task["after"]
        counts["masked_valid"] += masked is not None
        counts["masked_right_file"] += masked == task["after"]
    share = {
        key: round(counts[key] / max(1, len(tasks)), 4)
        for key in ("valid", "right_file", "masked_valid", "masked_right_file")
    }
    return {**_share(tasks), **share}


def measure_next_lines(step, maker, size):
    """Draws tasks that ask for the next line of plain code, given up to 1,500 tokens before it."""
    tasks, random, tokenizer = [], maker.random, maker.tokenizer
    for _ in range(size.held_out_lines * 40):
        if len(tasks) == size.held_out_lines:
            break
        lines = maker.files.draw(random).text.split("\n")
        if len(lines) < 40:
            continue
        at = random.randrange(30, len(lines) - 1)
        if len(lines[at].strip()) < 4:
            continue
        prompt = tokenizer.encode_text("\n".join(lines[:at]) + "\n")[-min(1500, size.target.shape.context - 200) :]
        tasks.append({"prompt_ids": prompt, "wanted_ids": tokenizer.encode_text(lines[at] + "\n")})
    mark_exact(step, tasks)
    return _share(tasks)


@torch.no_grad()
def measure_agreement(decoder, draft, maker, size):
    """Measures how often the draft's best token is the target's, on the target's own answers, and also at the positions
    where the answer leaves the old file."""
    tokenizer = maker.tokenizer
    tasks = draw_tasks(
        maker, max(2, size.held_out_edits // 18), 120, min(1000, size.largest_edit), size.target.shape.context
    )
    same, changed = [], []
    for task in tasks:
        answer = decoder.greedy(task["prompt_ids"], len(task["wanted_ids"]) + 40, tokenizer.stops)
        if not answer:
            continue
        ids = task["prompt_ids"] + answer
        guess = draft.logits(ids[:-1])[-len(answer) :].argmax(-1).tolist()
        agree = [a == b for a, b in zip(guess, answer)]
        marks = maker._changed_or_copied(
            answer, task["before"], samples.file_of_answer(tokenizer.decode(answer)) or task["after"]
        )
        same += agree
        changed += [a for a, mark in zip(agree, marks) if mark == samples.CHANGED]
    return {
        "tokens": len(same),
        "all": round(sum(same) / max(1, len(same)), 4),
        "changed_tokens": len(changed),
        "at_changes": round(sum(changed) / max(1, len(changed)), 4),
    }


def measure_hand_edits(step, tokenizer, size):
    """Counts the answers to requests that were written by hand. The sealed half is for this step alone."""
    halves = ("development", "sealed") if size.hand_edits else ()
    return {half: hand_edits.measure(step, tokenizer, hand_edits.load_half(half), size.target.shape.context) for half in halves}


def measure(step, draft_weights, tokenizer, held_out, names, size):
    maker = lambda part: samples.SampleMaker(
        tokenizer, held_out, names, samples.seed_of(size.seed, "evaluation", part)
    )  # noqa: E731
    decoder, draft = Decoder(step.weights), Decoder(draft_weights)
    return {
        "edits": measure_edits(step, maker("edits"), size),
        "hand_edits": measure_hand_edits(step, tokenizer, size),
        "copy_programs": measure_programs(step, decoder, maker("programs"), size),
        "next_line": measure_next_lines(step, maker("lines"), size),
        "draft_agreement": measure_agreement(decoder, draft, maker("agreement"), size),
        "held_out_packages": sorted({f["package"] for f in held_out}),
        "loss_weights": feed.LOSS_WEIGHT.tolist(),
    }
