"""Copy-as-Decode programs in the runtime's grammar (runtime/copy/README.md), over lines of one file.

`shortest` is the program of fewest bytes, as `redline copy oracle` prints it; the smoke test compares the two.
"""
import re
from collections import defaultdict

END = "</program>"
_COPY = re.compile(r'<copy lines="([1-9][0-9]*)-([1-9][0-9]*)"/>')
_GENERATE = re.compile(r"<gen>(.*?)</gen>", re.S)


def lines_of(text):
    """Splits text into lines that keep their line feed; only a line feed ends a line."""
    lines = text.split("\n")
    return [line + "\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def escape(text):
    return re.sub(r"<(\\*)/gen>", r"<\\\1/gen>", text)


def unescape(text):
    return re.sub(r"<\\(\\*)/gen>", r"<\1/gen>", text)


def _copy(begin, end):
    return f'<copy lines="{begin + 1}-{end}"/>'


def shortest(before, after):
    """Finds the shortest program by dynamic programming from the end: each new line is written, or copied together with
    some lines that follow it. Ties go to the longer copy, then to the earlier span."""
    old, new = lines_of(before), lines_of(after)
    places = defaultdict(list)
    for index, line in enumerate(old):
        places[line].append(index)
    count = len(new)
    run = defaultdict(int)  # (old line, new line) -> equal lines from there on
    for j in range(count - 1, -1, -1):
        for i in places[new[j]]:
            run[i, j] = 1 + run.get((i + 1, j + 1), 0)
    size = [len(escape(line).encode()) for line in new]
    outside = [0] * (count + 1)  # bytes from here on when no text is open; `inside` counts them when one is open
    inside = [0] * (count + 1)
    choice = [None] * count
    inside[count] = len("</gen>")
    for j in range(count - 1, -1, -1):
        best = (len("<gen>") + size[j] + inside[j + 1], 0, 0)
        for i in places[new[j]]:
            for length in range(run[i, j], 0, -1):
                best = min(best, (len(_copy(i, i + length)) + outside[j + length], -length, i))
        outside[j] = best[0]
        choice[j] = best
        inside[j] = min(size[j] + inside[j + 1], len("</gen>") + outside[j])
    return _spell_out(new, choice, outside, inside, size)


def _spell_out(new, choice, outside, inside, size):
    out, at = "", 0
    while at < len(new):
        _, negative_length, begin = choice[at]
        if negative_length:
            out += _copy(begin, begin - negative_length)
            at -= negative_length
            continue
        text = new[at]
        at += 1
        while at < len(new) and size[at] + inside[at + 1] < len("</gen>") + outside[at]:
            text += new[at]
            at += 1
        out += f"<gen>{escape(text)}</gen>"
    return out + END


def resolve(before, program):
    """Returns the new file, or None when this is not a program for that file."""
    old, at, out = lines_of(before), 0, ""
    while not program.startswith(END, at):
        match = _COPY.match(program, at)
        if match:
            begin, end = int(match[1]), int(match[2])
            if not begin <= end <= len(old):
                return None
            out += "".join(old[begin - 1 : end])
        else:
            match = _GENERATE.match(program, at)
            if not match:
                return None
            out += unescape(match[1])
        at = match.end()
    return out if at + len(END) == len(program) else None


def pieces(before, program):
    """Splits a program into [(text, copied lines or "")]: its copies, each with the lines that it copies, and the text
    between them. An unfinished part comes last."""
    old, at, found, begin = lines_of(before), 0, [], 0
    while at < len(program):
        match = _COPY.match(program, at)
        if match:
            if at > begin:
                found.append((program[begin:at], ""))
            found.append((match[0], "".join(old[int(match[1]) - 1 : int(match[2])])))
            at = begin = match.end()
            continue
        match = _GENERATE.match(program, at)
        if not match:
            break
        at = match.end()
    return found + ([(program[begin:], "")] if begin < len(program) else [])


_NUMBER_HEADS = ('<copy lines="', "<gen>", END)


def is_prefix(before, text):
    """Tells whether some program for that file begins with `text`, which is what the runtime's mask allows."""
    count, at = len(lines_of(before)), 0
    while at < len(text):
        rest = text[at:]
        if any(head.startswith(rest) for head in _NUMBER_HEADS):
            return True
        if rest.startswith(END):
            return rest == END
        match = _GENERATE.match(text, at)
        if match:
            at = match.end()
            continue
        if rest.startswith("<gen>"):
            return True
        match = _COPY.match(text, at)
        if match:
            if not int(match[1]) <= int(match[2]) <= count:
                return False
            at = match.end()
            continue
        return _is_copy_prefix(rest, count)
    return True


def _is_copy_prefix(text, count):
    match = re.fullmatch(r'<copy lines="([1-9][0-9]*)(?:(-)(?:([1-9][0-9]*)("(?:/)?)?)?)?', text)
    if not match or int(match[1]) > count:
        return False
    if match[3] is None:
        return True
    end = int(match[3])
    if match[4]:
        return int(match[1]) <= end <= count
    return end <= count and (
        end >= int(match[1])
        or any(int(match[1]) <= end * 10**n + 10**n - 1 and end * 10**n <= count for n in range(1, 7))
    )
