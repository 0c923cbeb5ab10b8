"""Training samples: prompts as Redline sends them (actors/prompts/edit_prompt.cpp), answers, and kinds of tokens."""
import difflib
import hashlib
import os
import random as random_module
import re
from dataclasses import dataclass

import numpy

import copy_programs
import drills
import edits
import small_modules
from python_source import NotApplicable, RESERVED, Source, excerpt, require

FENCE = "```"
# The kinds of tokens, each with its own weight in the loss:
# - COPIED continues what stands in the prompt; UNSURE and TIED are copied, but the prompt continues in several ways after
#   as many tokens as UNSURE_CONTEXT and TIED_CONTEXT say;
# - LEAVING is the first token that differs from the old file, CHANGED another new one, RESUMING the first of old text again;
# - READ is part of a line that the model reads after the copy that stands for it, READ_FIRST the first token of a copy.
PROMPT, COPIED, PLAIN, CHANGED, UNSURE, READ, TIED, LEAVING, RESUMING, READ_FIRST = range(10)
ANSWERED = (COPIED, CHANGED, UNSURE, TIED, LEAVING, RESUMING)  # what has to be right in an answer
COPIES = (COPIED, UNSURE, TIED)
UNSURE_CONTEXT, TIED_CONTEXT = 6, 16
RESUMING_TOKENS = 2
PACKAGE_SHARE_MAX = 0.09  # the largest share of all draws


def chat(message):
    return f"<|im_start|>user\n{message}<|im_end|>\n<|im_start|>assistant\n"


def edit_message(instruction, before):
    return f"{instruction}\n{FENCE}python\n{before}{FENCE}"


def edit_answer(after):
    return f"{FENCE}python\n{after}{FENCE}"


def file_of_answer(answer):
    """Returns the file in a whole-file answer, or None."""
    head = f"{FENCE}python\n"
    return (
        answer[len(head) : -len(FENCE)]
        if answer.startswith(head) and answer.endswith(FENCE) and len(answer) >= len(head) + 3
        else None
    )


def program_message(instruction, before):
    numbered = "".join(f"{n}\t{line}" for n, line in enumerate(copy_programs.lines_of(before), 1))
    return (
        f'{instruction}\nWrite an edit program that makes the new file: <copy lines="i-j"/> copies lines i to j of the file, '
        f"<gen>text</gen> writes new text, </program> ends it. The file, each line behind its number:\n{FENCE}python\n{numbered}{FENCE}"
    )


@dataclass
class Mix:
    """The data of a training stage: shares of tokens, and the sizes of files in characters."""

    characters_min: int = 100
    characters_max: int = 600
    tokens_max: int = 1024
    edit: float = 0.64
    program: float = 0.25
    plain: float = 0.05
    middle: float = 0.06
    strange_names: float = 0.0  # the share of edits whose file has names made up of arbitrary tokens
    drills: float = 0.15  # the share of edits whose file has passages that look alike
    small_modules: float = 0.15  # the share of edits whose file is made up, as newcomers write small files


class Files:
    """The corpus by package, with the recently used parsed files."""

    def __init__(self, files):
        self.by_package = {}
        for file in files:
            self.by_package.setdefault(file["package"], []).append(file["text"])
        total = sum(len(file["text"]) for file in files)
        shares = {p: sum(map(len, texts)) / total for p, texts in self.by_package.items()}
        limit = PACKAGE_SHARE_MAX if len(shares) > 11 else 1.0
        self.packages = sorted(shares)
        self.weights = [min(shares[p], limit) for p in self.packages]
        self._recent = []

    def draw(self, random):
        """Returns a parsed file. Each serves several samples, because parsing is expensive."""
        if len(self._recent) < 64 or random.random() < 0.08:
            package = random.choices(self.packages, self.weights)[0]
            self._recent.append(Source(random.choice(self.by_package[package])))
            if len(self._recent) > 64:
                self._recent.pop(random.randrange(64))
        return random.choice(self._recent)


def program_tokens(tokenizer, before, program, served=False):
    """Returns (tokens, whether the model writes each). A token never spans the end of a copy, whether or not the copied
    lines are read after it (`served`), so what the model writes up to there is the same in both cases."""
    tokens, said = [], []
    for text, copied in copy_programs.pieces(before, program):
        for part, is_said in ((tokenizer.encode(text), True), (tokenizer.encode_text(copied) if served else [], False)):
            tokens += part
            said += [is_said] * len(part)
    return tokens, said


class StrangeNames:
    """Renames some identifiers of a file to names made of arbitrary pieces of the vocabulary. Only copying can predict
    what follows such a name, and every token occurs as one to copy."""

    WORD = re.compile(r"[^\W\d]\w*")

    def __init__(self, tokenizer):
        texts = [tokenizer.bytes_of(t).decode("utf-8", "replace") for t in range(len(tokenizer.tokens))]
        self.pieces = [t for t in texts if t.isascii() and t.isalpha()]

    def name(self, random):
        pieces = random.choices(self.pieces, k=random.choice([1, 2, 2, 3, 3, 4]))
        return random.choice(["", "_", "_"]).join(pieces)

    def put_into(self, text, random):
        found = sorted(set(self.WORD.findall(text)) - RESERVED)
        share = random.choice([0.2, 0.5, 0.9])
        new = {name: self.name(random) for name in found if len(name) > 2 and random.random() < share}
        return self.WORD.sub(lambda match: new.get(match[0], match[0]), text)


def identifiers(files, random, file_count=300):
    """Returns names for renames, taken from the corpus."""
    names = set()
    for file in random.sample(files, min(file_count, len(files))):
        try:
            names |= {
                n for n in Source(file["text"]).names() if len(n) > 2 and n not in RESERVED and n.isascii()
            }
        except NotApplicable:
            pass
    return sorted(names)


def _hashes(tokens, count):
    """Returns a hash of the `count` tokens before each position from `count` on to the end."""
    sums = numpy.zeros(len(tokens) - count + 1, numpy.uint64)
    for back in range(count):
        sums = sums * numpy.uint64(0x9E3779B97F4A7C15) + tokens[back : len(tokens) - count + 1 + back] + numpy.uint64(1)
    return sums


def _continues_in_several_ways(asked, answered, count):
    """Tells for each token of the answer whether the prompt has different tokens after the `count` tokens before it."""
    if len(asked) <= count + 1:
        return numpy.zeros(len(answered), bool)
    tokens = numpy.array(asked + answered, numpy.uint64)
    before = _hashes(tokens[:-1], count)
    known, following = before[: len(asked) - count], tokens[count : len(asked)]
    order = numpy.argsort(known, kind="stable")
    known, following = known[order], following[order]
    differs = (known[1:] == known[:-1]) & (following[1:] != following[:-1])
    return numpy.isin(before[len(asked) - count :], known[1:][differs])


def with_unsure(asked, answered, kinds):
    """Returns the kinds of an answer's tokens, with UNSURE and TIED for COPIED ones that have more than one origin."""
    found = numpy.array(kinds)
    for kind, count in ((UNSURE, UNSURE_CONTEXT), (TIED, TIED_CONTEXT)):
        found[numpy.isin(found, COPIES) & _continues_in_several_ways(asked, answered, count)] = kind
    return found.tolist()


class SampleMaker:
    """Draws samples; the same seed gives the same samples."""

    def __init__(self, tokenizer, files, names, seed):
        self.tokenizer, self.files, self.editor = tokenizer, Files(files), edits.Editor(names)
        self.random, self.strange = random_module.Random(seed), None

    def edit_task(self, mix, edit_count=None, kinds=None):
        """Returns (instruction, old text, new text, kinds)."""
        random = self.random
        top = mix.characters_min + (mix.characters_max - mix.characters_min) * random.random()
        if random.random() < mix.small_modules:
            before = small_modules.small_module(random)
            require(len(before) <= mix.characters_max)
        else:
            before = excerpt(random, self.files.draw(random), mix.characters_min * 0.6, max(top, mix.characters_min))
        require(FENCE not in before)
        if random.random() < mix.drills:
            before = drills.hostile(random, before)
        if random.random() < mix.strange_names:
            self.strange = self.strange or StrangeNames(self.tokenizer)
            before = self.strange.put_into(before, random)
        instruction, after, done = edits.make_edit(self.editor, random, before, edit_count, kinds)
        return instruction, before, after, done

    def draw(self, mix, task):
        """Returns (tokens, the kind of each)."""
        return getattr(self, "_" + task)(mix)

    def _answered(self, prompt, answer, kinds_of):
        asked = self.tokenizer.encode(prompt)
        answered = self.tokenizer.encode(answer + "<|im_end|>\n")
        return asked + answered, [PROMPT] * len(asked) + with_unsure(asked, answered, kinds_of(answered))

    def _edit(self, mix):
        instruction, before, after, _ = self.edit_task(mix)
        return self._answered(
            chat(edit_message(instruction, before)),
            edit_answer(after),
            lambda tokens: self._changed_or_copied(tokens, before, after),
        )

    def _program(self, mix):
        """The copied lines follow each copy, as the grammar inserts them. A server trusts a span only as far as the model
        would write it, so the model learns to write them too."""
        instruction, before, after, _ = self.edit_task(mix)
        require("gen>" not in after and "program>" not in after)
        tokens = self.tokenizer.encode(chat(program_message(instruction, before)))
        program = copy_programs.shortest(before, after) + "<|im_end|>\n"
        answer, said = program_tokens(self.tokenizer, before, program, served=True)
        kinds = [
            CHANGED if now else READ if index and not said[index - 1] else READ_FIRST for index, now in enumerate(said)
        ]
        return tokens + answer, [PROMPT] * len(tokens) + kinds

    def _changed_or_copied(self, tokens, before, after):
        """Returns the kind of each token of an answer with the file `after`, from the lines that changed."""
        old, new = before.splitlines(True), after.splitlines(True)
        first = len(edit_answer("")) - len(FENCE)
        offset = numpy.cumsum([first] + [len(line.encode()) for line in new])
        ends = numpy.cumsum([len(self.tokenizer.bytes_of(t)) for t in tokens])
        kinds = numpy.full(len(tokens), COPIED)
        for tag, a, b, begin, end in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            if tag == "equal":
                continue
            gone, put = "".join(old[a:b]).encode(), "".join(new[begin:end]).encode()
            same = len(os.path.commonprefix([gone, put]))
            tail = len(os.path.commonprefix([gone[same:][::-1], put[same:][::-1]]))
            leaves = int(numpy.searchsorted(ends, offset[begin] + same, "right"))
            resumes = int(numpy.searchsorted(ends, offset[end] - tail, "right"))
            line_end = int(numpy.searchsorted(ends, offset[end], "right"))
            kinds[leaves : max(resumes, line_end)] = CHANGED
            kinds[resumes : resumes + RESUMING_TOKENS] = RESUMING
            kinds[leaves : leaves + 1] = LEAVING
        return kinds.tolist()

    def _plain(self, mix):
        text, random = self.files.draw(self.random).text, self.random
        length = int(random.uniform(0.4, 1) * min(mix.tokens_max, mix.characters_max)) * 2
        begin = text.rfind("\n", 0, random.randrange(max(1, len(text) - length))) + 1
        tokens = self.tokenizer.encode_text(text[begin : begin + length])
        return tokens, [PLAIN] * len(tokens)

    def _middle(self, mix):
        """Fill-in-the-middle: the model gives some lines, or an arbitrary piece, from the text before and after it."""
        text, random = self.files.draw(self.random).text, self.random
        length = int(random.uniform(0.3, 1) * min(mix.tokens_max * 2, mix.characters_max * 1.5))
        begin = text.rfind("\n", 0, random.randrange(max(1, len(text) - length))) + 1
        piece = text[begin : begin + length]
        if random.random() < 0.7:
            lines = piece.splitlines(True)
            require(len(lines) >= 5)
            first = random.randrange(1, len(lines) - 2)
            last = min(len(lines) - 1, first + random.randint(1, 3))
            cuts = len("".join(lines[:first])), len("".join(lines[:last]))
        else:
            require(len(piece) > 40)
            cuts = sorted(random.sample(range(len(piece)), 2))
            cuts[1] = min(cuts[1], cuts[0] + 120)
        prefix, middle, suffix = piece[: cuts[0]], piece[cuts[0] : cuts[1]], piece[cuts[1] :]
        asked = self.tokenizer.encode(f"<|fim_prefix|>{prefix}<|fim_suffix|>{suffix}<|fim_middle|>")
        answered = self.tokenizer.encode(middle + "<|endoftext|>")
        return asked + answered, [PROMPT] * len(asked) + [CHANGED] * len(answered)


def make_shard(maker, mix, token_count):
    """Makes samples of about `token_count` tokens: arrays (tokens, kinds, lengths). Tasks stay near their shares."""
    tasks = ["edit", "program", "plain", "middle"]
    spent = dict.fromkeys(tasks, 0)
    tokens, kinds, lengths, total = [], [], [], 0
    while total < token_count:
        task = max(tasks, key=lambda t: getattr(mix, t) * (total + 1) - spent[t])
        try:
            sample, marks = maker.draw(mix, task)
        except (NotApplicable, IndexError):
            continue
        if not 24 <= len(sample) <= mix.tokens_max:
            continue
        tokens.append(numpy.array(sample, numpy.uint16))
        kinds.append(numpy.array(marks, numpy.uint8))
        lengths.append(len(sample))
        spent[task] += len(sample)
        total += len(sample)
    return numpy.concatenate(tokens), numpy.concatenate(kinds), numpy.array(lengths, numpy.int32)


def seed_of(*parts):
    """Derives a seed from any values, the same on every machine."""
    return int.from_bytes(hashlib.blake2b(repr(parts).encode(), digest_size=7).digest(), "little")
