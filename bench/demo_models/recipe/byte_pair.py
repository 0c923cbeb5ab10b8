"""Byte-level BPE with the qwen2 pre-tokenizer: training and encoding, in plain Python.

Words are learned without the one character that the pre-tokenizer allows before letters, so " name", "(name", "_name"
and "name" all end in the same pieces. A renamed identifier is then the same tokens at every use, which a small model
copies far better than the variants of an ordinary vocabulary. Only words that are never identifiers (keywords and small
English words) are merged with the space before them afterwards. The result is an ordinary merge list.
"""
import heapq
import json
import re
import sys
import unicodedata
from collections import Counter, defaultdict

CONTROL_TOKENS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>"]
WORDS_WITH_BLANK = (
    "False None True and as assert async await break class continue def del elif else except finally for from global if "
    "import in is lambda nonlocal not or pass raise return try while with yield self "
    "the of to be that this it are by on should an at which when will its can has"
).split()


def _character_class(categories):
    """The inside of a regular expression's [...] that matches every character of these Unicode categories."""
    ranges, start = [], None
    for code in range(sys.maxunicode + 2):
        inside = code <= sys.maxunicode and unicodedata.category(chr(code))[0] in categories
        if inside and start is None:
            start = code
        elif not inside and start is not None:
            ranges.append((start, code - 1))
            start = None
    return "".join(re.escape(chr(a)) + ("-" + re.escape(chr(b)) if b > a else "") for a, b in ranges)


_LETTER, _DIGIT = _character_class("L"), _character_class("N")
PRETOKEN = re.compile(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
    rf"|[^\r\n{_LETTER}{_DIGIT}]?[{_LETTER}]+"
    rf"|[{_DIGIT}]"
    rf"| ?[^\s{_LETTER}{_DIGIT}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def _byte_letters():
    """GPT-2's alphabet: one printable character for each byte."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters = {byte: chr(byte) for byte in printable}
    for byte in range(256):
        if byte not in letters:
            letters[byte] = chr(256 + len(letters) - len(printable))
    return letters


LETTER_OF_BYTE = _byte_letters()
BYTE_OF_LETTER = {letter: byte for byte, letter in LETTER_OF_BYTE.items()}


def _spell(raw):
    return "".join(LETTER_OF_BYTE[byte] for byte in raw)


def _without_leading_mark(word):
    if len(word) > 1 and not word[0].isalpha() and word[1].isalpha():
        return word[1:]
    if len(word) > 1 and word[0] == " " and not word[1].isspace():
        return word[1:]
    return word


def _learn_merges(word_counts, merge_count):
    """Classic BPE: joins the most frequent pair of neighbors, `merge_count` times. The pair's bytes break ties."""
    words = sorted(word_counts)
    pieces = [[bytes([byte]) for byte in word] for word in words]
    counts = [word_counts[word] for word in words]
    pair_counts, words_with = Counter(), defaultdict(set)
    for index, word in enumerate(pieces):
        for pair in zip(word, word[1:]):
            pair_counts[pair] += counts[index]
            words_with[pair].add(index)
    queue = [(-count, pair) for pair, count in pair_counts.items()]
    heapq.heapify(queue)
    merges, known = [], set()
    while queue and len(merges) < merge_count:
        negative, pair = heapq.heappop(queue)
        if pair_counts.get(pair, 0) != -negative:
            if pair_counts.get(pair, 0) > 0:
                heapq.heappush(queue, (-pair_counts[pair], pair))
            continue
        joined = pair[0] + pair[1]
        if joined in known:  # two ways to make one piece would give one text two tokens
            pair_counts.pop(pair)
            continue
        known.add(joined)
        merges.append(pair)
        touched = set()
        for index in sorted(words_with.pop(pair)):
            word, count = pieces[index], counts[index]
            for old in zip(word, word[1:]):
                pair_counts[old] -= count
            pieces[index] = new = _join(word, pair, joined)
            for fresh in zip(new, new[1:]):
                pair_counts[fresh] += count
                words_with[fresh].add(index)
                touched.add(fresh)
        pair_counts.pop(pair, None)
        for fresh in touched:
            heapq.heappush(queue, (-pair_counts[fresh], fresh))
    return merges


def _join(word, pair, joined):
    out, at = [], 0
    while at < len(word):
        if at + 1 < len(word) and word[at] == pair[0] and word[at + 1] == pair[1]:
            out.append(joined)
            at += 2
        else:
            out.append(word[at])
            at += 1
    return out


def train(texts, vocabulary_size):
    """Returns the tokenizer as a dictionary of tokens and merges, ready to be saved. No merge joins a line feed, so a
    token ends wherever a line does: an edit begins and ends between tokens, and a line has the same tokens behind its
    number, in a copy and in the file."""
    word_counts = Counter()
    for text in texts:
        for match in PRETOKEN.finditer(text):
            word_counts[match.group()] += 1
    bare = Counter()
    for word, count in word_counts.items():
        for part in _without_leading_mark(word).encode().split(b"\n"):
            if len(part) > 1:
                bare[part] += count
    merge_count = vocabulary_size - 256 - len(CONTROL_TOKENS)
    learnt = _learn_merges(bare, merge_count)
    merges = learnt[: merge_count - len(WORDS_WITH_BLANK)]
    whole = {a + b for a, b in merges}
    with_blank = [(b" ", word.encode()) for word in WORDS_WITH_BLANK if word.encode() in whole]
    rest = learnt[len(merges) :]  # used in place of words that are not a single piece
    merges += rest[: merge_count - len(merges) - len(with_blank)] + with_blank
    tokens = [LETTER_OF_BYTE[byte] for byte in range(256)] + [_spell(a + b) for a, b in merges]
    tokens += [f"<|unused_{n}|>" for n in range(vocabulary_size - len(tokens) - len(CONTROL_TOKENS))] + CONTROL_TOKENS
    assert len(set(tokens)) == vocabulary_size
    return {"tokens": tokens, "merges": [_spell(a) + " " + _spell(b) for a, b in merges]}


class Tokenizer:
    def __init__(self, description):
        self.tokens, self.merges = description["tokens"], description["merges"]
        self.id_of = {token: index for index, token in enumerate(self.tokens)}
        self.rank = {tuple(merge.split(" ")): index for index, merge in enumerate(self.merges)}
        controls = "|".join(re.escape(token) for token in CONTROL_TOKENS)
        self.control = re.compile(controls)
        self.end_of_text, self.end_of_turn = self.id_of["<|endoftext|>"], self.id_of["<|im_end|>"]
        self.stops = {self.end_of_text, self.end_of_turn}
        self._words = {}

    @classmethod
    def load(cls, path):
        with open(path, encoding="utf-8") as file:
            return cls(json.load(file))

    def _encode_word(self, word):
        ids = self._words.get(word)
        if ids is None:
            pieces = list(_spell(word.encode()))
            while len(pieces) > 1:
                ranked = [(self.rank.get(pair, len(self.rank)), at) for at, pair in enumerate(zip(pieces, pieces[1:]))]
                best, at = min(ranked)
                if best == len(self.rank):
                    break
                pieces[at : at + 2] = [pieces[at] + pieces[at + 1]]
            ids = self._words[word] = [self.id_of[piece] for piece in pieces]
        return ids

    def encode_text(self, text):
        """Encodes `text` and treats control tokens in it as ordinary text."""
        return [token for match in PRETOKEN.finditer(text) for token in self._encode_word(match.group())]

    def encode(self, text):
        """Encodes `text` and turns control tokens in it into their ids."""
        ids, at = [], 0
        for match in self.control.finditer(text):
            ids += self.encode_text(text[at : match.start()])
            ids.append(self.id_of[match.group()])
            at = match.end()
        return ids + self.encode_text(text[at:])

    def bytes_of(self, token):
        text = self.tokens[token]
        if text.startswith("<|") and text.endswith("|>") and len(text) > 4:
            return text.encode()
        return bytes(BYTE_OF_LETTER[letter] for letter in text)

    def decode(self, ids):
        return b"".join(self.bytes_of(token) for token in ids).decode("utf-8", "replace")
