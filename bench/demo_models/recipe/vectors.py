"""Prompts with their token ids, greedy answers and best logits, computed in fp32, which every engine must reproduce."""
import itertools
import json
import subprocess

import torch

import samples
from decode import Decoder
from python_source import NotApplicable

ANSWER_TOKENS_MAX = 200
TIE = 1e-3  # with two logits this close, the order in which an engine sums decides
FORMAT = (
    "text is encoded with special tokens parsed and no BOS; continuation is greedy at temperature 0, fp32 weights, activations "
    f"and cache; it ends before <|im_end|> or <|endoftext|> or after {ANSWER_TOKENS_MAX} tokens"
)


def _fixed_prompts():
    ask = lambda instruction, before: samples.chat(samples.edit_message(instruction, before))  # noqa: E731
    yield "rename", ask(
        "Rename the function `add` to `plus`.",
        "def add(a, b):\n    return a + b\n\n\ndef twice(a):\n    return add(a, a)\n",
    )
    yield "system", "<|im_start|>system\nYou are a code editor.<|im_end|>\n" + ask(
        'Add `print("start")` at the start of `main`',
        "import sys\n\n\ndef main():\n    for a in sys.argv[1:]:\n        print(a)\n",
    )
    yield "program", samples.chat(
        samples.program_message("Delete the function `b`.", "def a():\n    return 1\n\n\ndef b():\n    return 2\n")
    )
    yield "fim", (
        '<|fim_prefix|>def area(width, height):\n    """Return the area."""\n    <|fim_suffix|>\n\n\nprint(area(2, 3))\n<|fim_middle|>'
    )
    yield "plain", "import os\nimport sys\n\n\nclass Node:\n    def __init__(self, name, parent=None):\n        self.name = name\n        self."
    yield "unicode", ask(
        'Change the string "h\u00e9llo" to "na\u00efve \u2013 \u65e5\u672c \U0001f600"',
        'GREETING = "h\u00e9llo"\n\n\ndef greet():\n    return GREETING\t\n',
    )


def _drawn_prompts(maker, number, context):
    """Yields an endless series of edit prompts, the first of which is case `number`."""
    while True:
        mix = samples.Mix(200, maker.random.choice([500, 1000, 2000]), context)
        try:
            instruction, before, _, _ = maker.edit_task(mix)
        except NotApplicable:
            continue
        program = number % 5 == 4
        message = (samples.program_message if program else samples.edit_message)(instruction, before)
        if len(maker.tokenizer.encode(message)) < context - 2 * ANSWER_TOKENS_MAX:
            yield "program" if program else "edit", samples.chat(message)
            number += 1


def _answer(decoder, ids, tokenizer):
    tokens = decoder.greedy(ids, ANSWER_TOKENS_MAX, tokenizer.stops)
    rows = decoder.logits(ids + tokens)[len(ids) - 1 :]
    first = rows[0]
    probabilities = torch.log_softmax(first, -1)
    best = first.topk(5)
    two = rows.topk(2, -1).values
    return {
        "continuation": tokens,
        "text": tokenizer.decode([t for t in tokens if t < tokenizer.id_of["<|endoftext|>"]]),
        "stopped": len(tokens) < ANSWER_TOKENS_MAX,
        "top5": [
            [i, round(v, 5), round(float(probabilities[i]), 5)]
            for v, i in zip(best.values.tolist(), best.indices.tolist())
        ],
        "min_gap": round(float((two[:, 0] - two[:, 1]).min()), 5),
    }


def make(target, draft, maker, count):
    tokenizer, decoders = maker.tokenizer, {"target": Decoder(target), "draft": Decoder(draft)}
    fixed = list(_fixed_prompts())[:count]
    prompts = itertools.chain(fixed, _drawn_prompts(maker, len(fixed), target.shape.context))
    cases = []
    for number, (name, text) in enumerate(prompts):
        if len(cases) == count:
            break
        ids = tokenizer.encode(text)
        answers = {who: _answer(decoder, ids, tokenizer) for who, decoder in decoders.items()}
        if number >= len(fixed) and any(a["min_gap"] <= TIE for a in answers.values()):
            continue  # engines may choose either token
        cases.append({"name": name, "text": text, "ids": ids, **answers})
    return {"format": FORMAT, "stop": sorted(tokenizer.stops), "cases": cases}


def save(found, path):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(found, file, indent=0)
        file.write("\n")


def check_with_redline(redline, model, who, path):
    """Returns problems: where the runtime's token ids or greedy tokens differ from the reference, except at ties."""
    with open(path, encoding="utf-8") as file:
        cases = json.load(file)["cases"]
    problems = []
    for number, case in enumerate(cases):
        wanted = case[who]["continuation"]
        run = subprocess.run(
            [
                redline,
                "generate",
                "--model",
                model,
                "--prompt",
                case["text"],
                "--kv",
                "f32",
                "--method",
                "regular",
                "--json",
                "-n",
                str(max(1, len(wanted))),
            ],
            capture_output=True,
            text=True,
            check=True,
        )
        found = json.loads(run.stdout)
        if found["prompt_tokens"] != case["ids"]:
            problems.append(f"{number} ({case['name']}): prompt tokens differ")
        if found["tokens"][: len(wanted)] != wanted and case[who]["min_gap"] > TIE:
            problems.append(
                f"{number} ({case['name']}): answer differs: expected {wanted[:40]}, found {found['tokens'][:40]}"
            )
    return problems
