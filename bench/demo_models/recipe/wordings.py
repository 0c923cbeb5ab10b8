"""How people word instructions: verbs, references to names and code, polite phrases, lists of several edits, typos.

A kind of edit gives templates to `Voice.say`. `[a|b]` in a template is a choice, `{slot}` takes a value, and a template
that begins with "=" is a statement ("x should be y") instead of a command ("rename x to y"). Templates begin in lower
case and have no period at the end. What a slot gets is a name, code, a text or plain words, and the voice decides how to
mark it. One voice speaks a whole instruction, so its marks are alike throughout.
"""
import re
from dataclasses import dataclass

CHOICE = re.compile(r"\[([^\[\]]*)\]")
SLOT = re.compile(r"\{(\w+)\}")
MARKS, MARK_WEIGHTS = ["`", "", "'", '"'], [46, 40, 7, 7]
SMALL_WORDS = set("to with as in and from of the a an by for or is it be at on file all line lines add remove".split())
PLACE_WORDS = (
    "in",
    "at",
    "before",
    "after",
    "below",
    "above",
    "right",
    "just",
    "no",
)  # "Can you in f, ..." is no English
TYPO_SHARE = 0.04
COMMAND_FRAMES = (  # (weight, text before, text after, whether the command keeps a capital)
    (50, "", ".", True),
    (17, "", "", True),
    (9, "", "", False),
    (5, "", ".", False),
    (7, "Please ", ".", False),
    (3, "please ", "", False),
    (3, "", ", please.", True),
    (2, "", " please", False),
    (6, "Can you ", "?", False),
    (2, "can you ", "?", False),
    (4, "Could you ", "?", False),
    (2, "Could you please ", "?", False),
    (1, "Can you please ", "?", False),
    (1, "Would you ", "?", False),
    (2, "I want you to ", ".", False),
    (2, "I need you to ", ".", False),
    (2, "I'd like you to ", ".", False),
    (2, "I would like to ", ".", False),
    (1, "I want to ", "", False),
    (2, "We should ", ".", False),
    (2, "We need to ", ".", False),
    (1, "You should ", ".", False),
    (1, "Let's ", ".", False),
    (1, "let's ", "", False),
    (1, "Just ", ".", False),
    (1, "Now ", ".", False),
    (1, "In this file, ", ".", False),
    (1, "Help me ", ".", False),
    (1, "Go ahead and ", ".", False),
    (1, "Hi, please ", ".", False),
    (1, "Hey, can you ", "?", False),
    (1, "", ", thanks.", True),
    (3, "", "", False),
    (2, "", " pls", False),
    (1, "pls ", "", False),
    (1, "", ", thx", False),
    (1, "", ". Thanks!", True),
    (1, "Could you please ", "? Thanks!", False),
    (1, "I think you should ", ".", False),
    (1, "Hi! Please ", ".", False),
    (1, "next: ", "", False),
    (1, "And now ", ".", False),
    (1, "We want to ", ".", False),
    (1, "It would be better to ", ".", False),
    (1, "How about this: ", ".", False),
)
STATEMENT_FRAMES = (
    (50, "", ".", True),
    (25, "", "", True),
    (15, "", "", False),
    (6, "", ", please.", True),
    (2, "", " please", False),
    (2, "", ", thanks", False),
    (2, "", " pls", False),
    (2, "I think ", ".", False),
    (1, "I think ", "", False),
    (1, "Hi, ", ".", False),
    (1, "hey, ", "", False),
    (1, "", "!", True),
    (1, "oh, and ", "", False),
    (1, "In my opinion ", ".", False),
)


class Name(str):
    """An identifier or a dotted name."""


class Code(str):
    """A line, an expression or any other piece of code."""


class Text(str):
    """What stands between the quotes of a string, a docstring or a comment."""


@dataclass
class Said:
    """One edit in words, without a frame around it."""

    text: str
    is_command: bool
    begins_with_words: bool  # and not with a name or code, whose case must stay
    ends_open: bool  # ends in code without marks, so no period may follow


def weighted(random, frames):
    return random.choices(frames, [frame[0] for frame in frames])[0]


def chosen(random, template):
    """Makes all choices of a template."""
    while "[" in template:
        template = CHOICE.sub(lambda match: random.choice(match[1].split("|")), template)
    return template


def form_count(template):
    """Counts the ways to choose in a template whose choices are not nested."""
    count = 1
    for match in CHOICE.finditer(template):
        count *= len(match[1].split("|"))
    return count


def with_typo(random, words):
    """Changes one ordinary word of five letters or more: two letters swapped, one dropped or one doubled."""
    found = list(re.finditer(r"(?<![\w{])[a-z]{5,}(?![\w}])", words))
    if not found:
        return words
    match = random.choice(found)
    word, at, way = match[0], random.randrange(1, len(match[0]) - 2), random.random()
    if way < 0.45:
        word = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    elif way < 0.8:
        word = word[:at] + word[at + 1 :]
    else:
        word = word[:at] + word[at] + word[at:]
    return words[: match.start()] + word + words[match.end() :]


class Voice:
    """The way that one user writes."""

    def __init__(self, random):
        self.random = random
        self.mark = random.choices(MARKS, MARK_WEIGHTS)[0]
        self.makes_typo = random.random() < TYPO_SHARE

    # ---- references

    def name(self, name, after=""):
        mark = self.mark if name.lower() not in SMALL_WORDS or after else self.mark or "`"
        return mark + name + after + mark

    def function(self, function, owner=None):
        """Refers to a function or method; `owner` is its class or None."""
        random, name = self.random, function.name
        what = "method" if owner else "function"
        marked = self.name(name, random.choice(["", "", "", "()"]))
        way = random.random()
        if owner and way < 0.3:
            return random.choice(
                [
                    self.name(f"{owner.name}.{name}"),
                    self.name(f"{owner.name}.{name}"),
                    self.name(f"{owner.name}.{name}", "()"),
                    f"{marked} in {self.name(owner.name)}",
                    f"the method {marked} of {self.name(owner.name)}",
                    f"the {marked} method of the {self.name(owner.name)} class",
                    f"{self.name(owner.name)}'s {marked} method",
                ]
            )
        if way < 0.55:
            return marked
        return random.choice(
            [
                f"the {what} {marked}",
                f"the {what} {marked}",
                f"the {marked} {what}",
                f"the {marked} {what}",
                f"{what} {marked}",
                f"{marked} {what}",
                f"the {what} called {marked}",
                f"the {what} named {marked}",
            ]
        )

    def thing(self, what, name):
        """Refers to a class, variable, constant, parameter and the like."""
        marked = self.name(name)
        return self.random.choice(
            [marked] * 5
            + [f"the {what} {marked}"] * 3
            + [f"the {marked} {what}"] * 2
            + [f"{what} {marked}", f"the {what} called {marked}"]
        )

    def class_(self, name):
        return self.thing("class", name)

    # ---- marks of code and text

    def code(self, code, at_end=False, after_colon=False):
        """Marks code; without marks only where a reader can tell where it ends."""
        plain = len(code) <= 30 and not SMALL_WORDS & set(re.findall(r"\w+", code)) and not re.search(r"[.,:;]$", code)
        if after_colon and self.random.random() < 0.6:
            return code
        if self.mark == "" and (at_end or plain):
            return code
        mark = self.mark or self.random.choice("``\"'")
        return (mark if mark not in code else "`") + code + (mark if mark not in code else "`")

    def text(self, text, after_colon=False):
        if after_colon and self.random.random() < 0.4:
            return text
        ways = ['"', '"', '"', "'"] + ["`"] * (self.mark == "`")
        mark = self.random.choice([m for m in ways if m not in text] or ['"'])
        return mark + text + mark

    # ---- sentences

    def say(self, *templates, **slots):
        """Words one edit by one of the templates."""
        random = self.random
        words = chosen(random, random.choice(templates))
        words = re.sub(r"  +", " ", words).strip()
        words = re.sub(r"\b([Aa]) (?=[aeio])", r"\1n ", re.sub(r" (?=[,:;])", "", words))
        is_command = not (words.startswith("=") or words.split(" ")[0] in PLACE_WORDS)
        words = words.lstrip("=").lstrip()
        if self.makes_typo:
            words = with_typo(random, words)
            self.makes_typo = False
        ends_open = False

        def filled(match):
            nonlocal ends_open
            value, at_end = slots[match[1]], match.end() == len(words)
            after_colon = at_end and words[: match.start()].endswith(": ")
            if isinstance(value, Name):
                return self.name(value)
            if isinstance(value, (Code, Text)):
                way = (
                    self.text(value, after_colon) if isinstance(value, Text) else self.code(value, at_end, after_colon)
                )
                ends_open = ends_open or (at_end and way == value and not re.fullmatch(r"\w+", value))
                return way
            return value

        return Said(SLOT.sub(filled, words), is_command, words[:1].isalpha(), ends_open)

    def _cased(self, said, upper):
        """A first letter that belongs to a name or to code stays as it is."""
        text = said.text
        return text[0].upper() + text[1:] if upper and said.begins_with_words else text

    def _framed(self, said):
        """Puts one edit into a sentence."""
        _, before, after, upper = weighted(self.random, COMMAND_FRAMES if said.is_command else STATEMENT_FRAMES)
        if said.ends_open:
            after, upper = "", upper or not before
        return before + self._cased(said, upper) + after

    def _listed(self, parts):
        """Puts edits into a list with a line each."""
        random = self.random
        bullets = random.choice(
            [["- "] * 9, ["- "] * 9, ["* "] * 9]
            + [[f"{n}{end} " for n in range(1, 10)] for end in ".."]
            + [[f"{n}) " for n in range(1, 10)]]
        )
        upper, end = random.random() < 0.6, random.choice([".", "", ""])
        lines = [b + self._cased(p, upper) + ("" if p.ends_open else end) for b, p in zip(bullets, parts)]
        head = random.choice(
            ["", "", "", "Please make these changes:\n", "Do the following:\n", "Changes:\n", "please:\n"]
        )
        return head + "\n".join(lines)

    def instruction(self, parts):
        """Words one or several edits as one instruction."""
        random = self.random
        if len(parts) == 1:
            return self._framed(parts[0])
        way = random.random()
        if way < 0.4 or any(part.ends_open for part in parts[:-1]):
            return self._listed(parts)
        if way < 0.62:
            upper, end = random.random() < 0.85, random.choice([".", ".", ""])
            links = [random.choice(["", "", "Then ", "Also ", "Also, ", "After that, "]) for _ in parts]
            sentences = [
                (link if upper else link.lower()) + self._cased(part, upper and not link)
                for link, part in zip([""] + links[1:], parts)
            ]
            return ". ".join(sentences) + ("" if parts[-1].ends_open else end)
        texts = [part.text for part in parts]
        if way < 0.74:
            joined = "; ".join(texts)
        elif way < 0.82:
            joined = ", then ".join(texts)
        elif len(texts) == 2:
            joined = random.choice([" and ", " and ", ", and ", " and then ", " and also ", ", then "]).join(texts)
        else:
            joined = ", ".join(texts[:-1]) + random.choice([" and ", ", and ", " and then "]) + texts[-1]
        return self._framed(
            Said(joined, all(p.is_command for p in parts), parts[0].begins_with_words, parts[-1].ends_open)
        )
