"""Requests for something that the file does not have or that is so already. The answer is the file as it is."""
import ast
import re
import tokenize

from edit_request import kind
from python_source import RESERVED, require
from vocabulary import CLASS_ENDINGS, NOUNS, VERBS, a_sentence
from wordings import Code, Name, Text


def absent_name(ask, what):
    """Returns a name that the file does not have; half of them look like one that it has."""
    source = ask.source
    like = sorted(n for n in source.names() if n not in RESERVED and len(n) > 3)
    if what == "class":
        name = ask.choice(NOUNS).capitalize() + ask.choice(CLASS_ENDINGS)
    elif what == "constant":
        name = "_".join(ask.random.sample(NOUNS, 2)).upper()
    elif like and ask.chance(0.4):
        name = ask.choice(like) + "_" + ask.choice(NOUNS)
    else:
        name = (
            ask.choice(VERBS) + "_" + ask.choice(NOUNS)
            if what in ("function", "method")
            else "_".join(ask.random.sample(NOUNS, 2))
        )
    require(name.lower() not in source.text.lower())
    return name


@kind(2.1, unchanged=True)
def nothing_of_that_name(ask):
    what = ask.choice(["function", "function", "method", "class", "variable", "constant", "parameter"])
    name, new = absent_name(ask, what), ask.choice(VERBS) + "_" + ask.choice(NOUNS)
    x = ask.thing(what, name)
    number = str(ask.random.randint(0, 999))
    forms = [
        "rename {x} to {new}",
        "={x} should be called {new}",
        "rename {old} [->|to] {new}",
        "[delete|remove|drop] {x}",
        "[delete|remove] {x}",
    ]
    if what in ("function", "method"):
        forms += [
            "add the docstring {words} to {x}",
            "[remove|delete] the docstring of {x}",
            "make {x} async",
            "add a parameter {new} to {x}",
            "add {line} at the start of {x}",
            "comment out {x}",
            "make {x} return None",
            "change the default of {p} in {x} to {number}",
        ]
    elif what in ("constant", "variable"):
        forms += [
            "set {x} to {number}",
            "change {x} to {number}",
            "={x} should be {number}",
            "change the value of {x} to {number}",
        ]
    elif what == "class":
        forms += [
            "make {x} inherit from {base}",
            "add the docstring {words} to {x}",
            "add a method {new} that returns None to {x}",
        ]
    return (
        ask.say(
            *forms,
            x=x,
            old=Name(name),
            new=Name(new),
            words=Text(a_sentence(ask.random)),
            line=Code("print(" + ask.source.quote() + "start" + ask.source.quote() + ")"),
            number=number,
            base=Name("Base"),
            p=Name(ask.choice(NOUNS)),
        ),
        None,
    )


@kind(1.1, unchanged=True)
def no_such_text(ask):
    a, b = ask.random.sample(NOUNS, 2)
    old, new = ask.choice(
        [
            (f"{a} = {b}", f"{b} = {a}"),
            (f"return {a}_{b}", f"return {a}"),
            (f"import {a}_{b}", f"import {a}"),
            (f"{a}.{ask.choice(VERBS)}({b})", f"{b}.{ask.choice(VERBS)}({a})"),
        ]
    )
    require(old not in ask.source.text)
    text = a_sentence(ask.random).rstrip(".")
    require(text not in ask.source.text)
    return (
        ask.say(
            "replace the line {old} with {new}",
            "[delete|remove|drop] the line {old}",
            "change {old} to {new}",
            "comment out the line {old}",
            "={old} should be {new}",
            "change the [string|text] {text} to {words}",
            "replace {text} with {words}",
            "[remove|delete] the comment {text}",
            old=Code(old),
            new=Code(new),
            text=Text(text),
            words=Text(a_sentence(ask.random).rstrip(".")),
        ),
        None,
    )


@kind(0.6, unchanged=True)
def done_already(ask):
    """What the request wants is so already."""
    source = ask.source
    found = []
    if not any(t.type == tokenize.COMMENT for t in source.tokens):
        found += ["[remove|delete|strip] all [the |]comments"]
    if "print" not in source.text:
        found += ["[remove|delete|drop] all [the |]print [statements|calls]"]
    if not re.search(r"'''|\"\"\"", source.text):
        found += ["[remove|delete] [all|the] docstrings of functions"]
    if "'" not in source.text:
        found += ["use double quotes [instead of|not] single quotes", "change single quotes to double quotes"]
    lines = [
        source.text_of(n)
        for n in source.tree.body
        if isinstance(n, (ast.Import, ast.ImportFrom)) and n.lineno == n.end_lineno
    ]
    slots = {}
    if lines:
        slots["line"] = Code(ask.choice(lines))
        found += ["add {line} if it is not [there|imported] yet", "add {line} unless it is there already"]
    if re.search(r"\bdef \w+\(.*\) ->", source.text) is None:
        found += ["[remove|delete] all return [type annotations|annotations]"]
    require(found)
    said = ask.say(ask.choice(found), **slots)
    return said, None
