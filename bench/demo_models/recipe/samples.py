"""Training samples: prompts as Redline sends them (actors/prompts/edit_prompt.cpp), answers, and kinds of tokens."""
import difflib
import hashlib
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
# The kinds of tokens, each with its own weight in the loss. UNSURE is a copied token before which the old file has text
# that continues in several ways; READ is part of a line that the model reads after the copy that stands for it.
PROMPT, COPIED, PLAIN, CHANGED, UNSURE, READ = range(6)
ANSWERED = (COPIED, CHANGED, UNSURE)  # what has to be right in an answer
CONTEXT_TOKENS = 5  # how many tokens before it must match for a token to count as copied
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


def with_unsure(asked, answered, kinds):
    """Returns the kinds of an answer's tokens, with UNSURE for COPIED ones that have more than one origin."""
    seen, tokens = {}, asked + answered
    for at in range(CONTEXT_TOKENS, len(asked)):
        seen.setdefault(tuple(tokens[at - CONTEXT_TOKENS : at]), set()).add(tokens[at])

    def unsure(at):
        return len(seen.get(tuple(tokens[at - CONTEXT_TOKENS : at]), ())) > 1

    return [UNSURE if kind == COPIED and unsure(len(asked) + i) else kind for i, kind in enumerate(kinds)]


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
        """Half of the samples are text alone; in the other half the copied lines follow each copy, as the grammar
        inserts them. A server trusts a span only as far as the model would write it, so the model must be able to."""
        instruction, before, after, _ = self.edit_task(mix)
        require("gen>" not in after and "program>" not in after)
        tokens = self.tokenizer.encode(chat(program_message(instruction, before)))
        program = copy_programs.shortest(before, after) + "<|im_end|>\n"
        answer, said = program_tokens(self.tokenizer, before, program, served=self.random.random() < 0.5)
        return tokens + answer, [PROMPT] * len(tokens) + [CHANGED if s else READ for s in said]

    def _changed_or_copied(self, tokens, before, after):
        """CHANGED marks tokens of changed lines, and the few where the answer leaves the old text or returns to it."""
        old, new = before.splitlines(True), after.splitlines(True)
        offset = numpy.cumsum([len(edit_answer("")) - len(FENCE)] + [len(line.encode()) for line in new])
        mark = numpy.zeros(offset[-1] + 64, bool)
        for tag, _, _, begin, end in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            if tag != "equal":
                mark[max(0, offset[begin] - 1) : offset[end] + 6] = True
        ends = numpy.cumsum([len(self.tokenizer.bytes_of(t)) for t in tokens]).clip(max=len(mark))
        begins = numpy.concatenate([[0], ends[:-1]])
        seen = numpy.concatenate([[0], numpy.cumsum(mark)])
        return numpy.where(seen[ends] > seen[begins], CHANGED, COPIED).tolist()

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
