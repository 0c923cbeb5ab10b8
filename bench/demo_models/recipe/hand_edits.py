"""Edits written by hand, in the words that people type: they measure what the generator of edits cannot.

Each line of a file in hand_edits/ is {"name", "text", "cases": [{"kind", "instruction", "accepted"}]}. `accepted` has up to
three answers, each a list of [old, new] replacements to be made in turn; `old` then occurs once in the text.
"""
import ast
import json
import os
from collections import Counter, defaultdict
from dataclasses import dataclass

import torch

import samples
from fast_step import Batch

KINDS = ("determined", "invention", "unchanged")


@dataclass
class Case:
    file: str
    kind: str
    instruction: str
    before: str
    accepted: list  # whole files


def _replaced(text, pairs):
    for old, new in pairs:
        if text.count(old) != 1:
            raise ValueError(f"expected {old!r} once, found it {text.count(old)} times")
        text = text.replace(old, new)
    ast.parse(text)
    return text


def load(path):
    found = []
    with open(path, encoding="utf-8") as lines:
        for file in map(json.loads, lines):
            for case in file["cases"]:
                if case["kind"] not in KINDS:
                    raise ValueError(f"{file['name']}: expected one of {KINDS}, found {case['kind']!r}")
                try:
                    accepted = [_replaced(file["text"], pairs) for pairs in case["accepted"]]
                except (ValueError, SyntaxError) as problem:
                    raise ValueError(f"{file['name']}: {case['instruction']!r}: {problem}") from problem
                if case["kind"] == "determined" and file["text"] in accepted:
                    raise ValueError(f"{file['name']}: {case['instruction']!r} changes nothing")
                found.append(Case(file["name"], case["kind"], case["instruction"], file["text"], accepted))
    return found


def load_half(name):
    """Returns the cases of `development` or `sealed`."""
    return load(os.path.join(os.path.dirname(os.path.abspath(__file__)), "hand_edits", f"{name}.jsonl"))


@torch.no_grad()
def _gives(step, prompt, answer):
    """Whether greedy decoding of the prompt gives this answer."""
    row = torch.tensor((prompt + answer)[:-1])
    batch = Batch(row, row, torch.ones(len(row)), torch.tensor([0, len(row)]))
    best = step.logits(step.forward(batch)[-len(answer) :].contiguous()).cpu().argmax(-1)
    return best.tolist() == answer


def measure(step, tokenizer, cases, context):
    """Returns by kind how many answers are right, leave the file as it is, do harm, or are too long to ask for."""
    counts = defaultdict(Counter)
    for case in cases:
        prompt = tokenizer.encode(samples.chat(samples.edit_message(case.instruction, case.before)))
        answer_of = lambda text: tokenizer.encode(samples.edit_answer(text) + "<|im_end|>")  # noqa: E731
        if len(prompt) + max(len(answer_of(text)) for text in case.accepted) > context:
            counts[case.kind]["too long"] += 1
        elif any(_gives(step, prompt, answer_of(text)) for text in case.accepted):
            counts[case.kind]["right"] += 1
        elif _gives(step, prompt, answer_of(case.before)):
            counts[case.kind]["unchanged"] += 1
        else:
            counts[case.kind]["harm"] += 1
    return {kind: dict(counts[kind]) for kind in KINDS if kind in counts}
