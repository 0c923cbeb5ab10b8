"""Kinds of edits that put something in.

Users seldom say where. So the places are fixed: an import goes behind the last import, a method to the end of its class,
a function to the end of the file, a parameter behind the others, a docstring below `def`, a log line to the start of the
body behind the docstring.
"""
import ast
import re

from edit_request import kind
from python_source import a_simple_line, body_start, docstring_node, first_line, indent_of, require
from vocabulary import EXCEPTIONS, MODULES, NOUNS, VERBS, a_sentence
from wordings import Code, Name, Text

ADD = "[add|insert|put|add]"


def module_imports(source):
    return [n for n in source.tree.body if isinstance(n, (ast.Import, ast.ImportFrom))]


@kind(2)
def add_import(ask):
    source, module = ask.source, ask.choice(MODULES)
    line = ask.choice(
        [f"import {module}"] * 4
        + [f"from typing import {ask.choice(['Any', 'Dict', 'List', 'Optional', 'Union', 'Callable'])}"]
        + [
            ask.choice(
                [
                    "from pathlib import Path",
                    "from collections import defaultdict",
                    "from dataclasses import dataclass",
                    "from datetime import datetime",
                    "import numpy as np",
                    "from collections import Counter",
                    "from functools import lru_cache",
                    "import requests",
                ]
            )
        ]
        + [f"from {module} import {ask.choice(NOUNS)}"]
    )
    require(line not in source.lines and source.tree.body)
    imports = module_imports(source)
    if imports and ask.chance(0.15):
        at, where = imports[0].lineno - 1, ask.choice([" before the first import", " above the imports"])
    elif imports:
        at, where = imports[-1].end_lineno, ask.choice(
            [""] * 5 + [" after the last import", " at the end of the imports", " below the other imports"]
        )
    else:
        docstring = docstring_node(source.tree)
        at, where = (
            (docstring.end_lineno, "")
            if docstring
            else (0, ask.choice(["", "", " at the top of the file", " at the top"]))
        )
        require(not source.lines[0].startswith("#"))
    put = [line]
    if not imports:
        put = ["", line] if at else [line, "", ""] if re.match(r"(def|class|@)", source.lines[0]) else [line, ""]
    what = re.match(r"import ([\w.]+)$", line) or re.match(r"from ([\w.]+) import (\w+)$", line)
    forms = ["import {m}{w}", "[add|put in] an import [of|for] {m}{w}", "=the {m} import is missing, add it{w}"]
    forms = (
        forms
        if what and line.startswith("import")
        else ["import {n} from {m}{w}", "[add|put in] an import of {n} from {m}{w}"]
        if what
        else []
    )
    if where:
        forms += [ADD + " {line}{w}", ADD + " the import {line}{w}"] * 2
    else:
        forms += [
            "add {line}",
            "add the import {line}",
            "[add|insert] the line {line} [to|at the end of] the imports" if imports else "add {line} at the top",
            "add [this import|the following import|an import]: {line}",
        ] * 2
    return ask.say(
        *forms,
        line=Code(line),
        m=Name(what[1] if what else module),
        n=Name(what[2] if what and what.re.groups > 1 else "x"),
        w=where,
    ), source.with_lines(at, put)


@kind(2.1)
def import_name(ask):
    """Adds a name to an import of names."""
    nodes = [n for n in ask.source.nodes(ast.ImportFrom) if n.module and n.lineno == n.end_lineno and not n.level]
    node = ask.choice(nodes)
    line = ask.source.lines[node.lineno - 1]
    require(re.fullmatch(r"\s*from \S+ import [\w, ]+", line) and [n.module for n in nodes].count(node.module) == 1)
    name = (
        ask.choice(VERBS) + "_" + ask.choice(NOUNS)
        if node.module not in ("typing", "collections")
        else ask.choice(
            ["Any", "Dict", "Optional", "List", "Union", "Callable", "Iterable"]
            if node.module == "typing"
            else ["Counter", "defaultdict", "deque", "OrderedDict", "namedtuple"]
        )
    )
    require(ask.source.count_of(name) == 0)
    return ask.say(
        "also import {n} from {m}",
        "[extend|change] the import from {m} [by|to include] {n}",
        "=we [also|additionally] need {n} from {m}",
        "={n} should [also be imported|be imported too] from {m}",
        "put {n} [in|into] the import from {m} [too|as well]",
        "import {n} from {m} [too|as well]",
        "add {n} to the import [from|of] {m}",
        "add {n} to the {m} import",
        "in the import from {m}, add {n}",
        "=the import from {m} should also [have|contain|include] {n}",
        n=Name(name),
        m=Name(node.module),
    ), ask.source.with_lines(node.lineno - 1, [line.rstrip() + ", " + name], node.lineno)


@kind(4.4)
def add_docstring(ask):
    function, _, f = ask.drawn_function()
    require(docstring_node(function) is None)
    at, indent = first_line(function.body[0]), " " * function.body[0].col_offset
    while at > function.lineno and (
        ask.source.lines[at - 1].strip().startswith("#") or not ask.source.lines[at - 1].strip()
    ):
        at -= 1
    words = a_sentence(ask.random)
    mark = "'''" if ask.source.text.count("'''") > ask.source.text.count('"""') else '"""'
    return ask.say(
        "add the docstring {words} to {f}",
        "give {f} the docstring {words}",
        "[add|insert|write] a docstring [to|for|in] {f}: {words}",
        "add a docstring to {f} that says {words}",
        "[document|describe] {f} with {words} as its docstring",
        "={f} should have the docstring {words}",
        "={f} needs a docstring: {words}",
        "use {words} as the docstring of {f}",
        "in {f}, add [the docstring|a docstring:] {words}",
        f=f,
        words=Text(words),
    ), ask.source.with_lines(at, [indent + mark + words + mark])


@kind(1.6)
def add_class_docstring(ask):
    node = ask.choice(
        [n for n in ask.source.nodes(ast.ClassDef) if docstring_node(n) is None and n.body[0].lineno > n.lineno]
    )
    row = node.lineno - 1
    require(ask.source.lines[row].rstrip().endswith(":"))
    words = a_sentence(ask.random)
    indent = " " * node.body[0].col_offset
    return ask.say(
        "add the docstring {words} to {c}",
        "give {c} the docstring {words}",
        "[add|insert|write] a docstring [to|for] {c}: {words}",
        "={c} should have the docstring {words}",
        "={c} needs a docstring: {words}",
        c="the class " + ask.name(node.name) if ask.chance(0.5) else ask.class_(node.name),
        words=Text(words),
    ), ask.source.with_lines(row + 1, [f'{indent}"""{words}"""'])


@kind(0.73)
def add_module_docstring(ask):
    require(
        docstring_node(ask.source.tree) is None and ask.source.tree.body and not ask.source.lines[0].startswith("#")
    )
    words = a_sentence(ask.random)
    return ask.say(
        "add the module docstring {words}",
        "[insert|write|put] [a|the] [module|file] docstring [at the top|first]: {words}",
        "[document|describe] the [module|file] with the docstring {words}",
        "=the [file|module] [needs|should have|should start with|should begin with] the docstring {words}",
        "[start|begin] the [file|module] with the docstring {words}",
        "add a [module docstring|docstring at the top of the file]: {words}",
        "[put|add] the docstring {words} at the top of the [file|module]",
        "give the [file|module] the docstring {words}",
        "=the module should have the docstring {words}",
        words=Text(words),
    ), ask.source.with_lines(0, [f'"""{words}"""', ""])


@kind(1.6)
def add_long_docstring(ask):
    """Adds a docstring of several lines that the instruction gives word for word."""
    function, _, f = ask.drawn_function()
    names = [a.arg for a in function.args.args if a.arg not in ("self", "cls")]
    require(docstring_node(function) is None and names and len(names) <= 4)
    at, indent = first_line(function.body[0]), " " * function.body[0].col_offset
    require(at == function.lineno)
    summary = a_sentence(ask.random)
    about = [(n, "The " + " ".join(ask.random.sample(NOUNS, 2)) + ".") for n in names]
    if ask.chance(0.6):
        put = [f'"""{summary}', "", "Args:"] + [f"    {n}: {words}" for n, words in about] + ['"""']
        said = "; ".join(f"{n}: {words}" for n, words in about)
        said = ask.say(
            "add a Google style docstring to {f} with the summary {summary} and [the arguments|these Args|Args] {args}",
            "give {f} a Google style docstring, [summary|the summary is] {summary}, [Args|with Args]: {args}",
            "document {f} in Google style: {summary} [Args|Arguments]: {args}",
            f=f,
            summary=ask.text(summary),
            args=said,
        )
        said.ends_open = True
    else:
        more = a_sentence(ask.random)
        put = [f'"""{summary}', "", more, '"""']
        said = ask.say(
            "add a docstring to {f} with the summary {a} and, after an empty line, {b}",
            "give {f} a docstring of two paragraphs: {a} and {b}",
            "add a docstring with two paragraphs to {f}, {a} and {b}",
            f=f,
            a=ask.text(summary),
            b=ask.text(more),
        )
    return said, ask.source.with_lines(at, [indent + line if line else "" for line in put])


@kind(1.9)
def add_comment(ask):
    todo = ask.chance(0.35)
    words = (
        f"TODO: {ask.choice(VERBS)} the {ask.choice(NOUNS)}"
        if todo
        else ask.choice(["", "", "NOTE: "]) + a_sentence(ask.random).rstrip(".")
    )
    if ask.chance(0.6):
        function, _, where = ask.drawn_function(200)
        at, indent = first_line(function), function.col_offset
    else:
        at, text = a_simple_line(ask.random, ask.source)
        indent, where = indent_of(ask.source.lines[at]), "the line " + ask.code(text) if ask.chance(0.6) else ask.code(
            text
        )
    return ask.say(
        ADD + " the comment {c} [above|before] {w}",
        ADD + " the comment {c} [above|before|over] {w}",
        "put {c} [above|before] {w}",
        "[above|before|right above] {w}, add the comment {c}",
        ADD + " a comment [above|before] {w}: {c}",
        "[add|write] [above|before] {w} the comment {c}",
        "add a [TODO|todo|TODO comment] [above|before] {w}: {t}" if todo else "comment {w} with {c} on the line above",
        c=Code("# " + words) if ask.chance(0.5) else Text(words) if ask.chance(0.5) else Code("# " + words),
        t=words[len("TODO: ") :] if todo else "",
        w=where,
    ), ask.source.with_lines(at, [" " * indent + "# " + words])


def log_line(ask, name):
    """Returns a line that reports something about a function, in the quotes of the file."""
    words = ask.choice(
        [
            name,
            f"entering {name}",
            f"{name} called",
            f"calling {name}",
            f"start {name}",
            f"in {name}",
            f"{ask.choice(VERBS)} {ask.choice(NOUNS)}",
            "start",
            "done",
            "here",
            "debug",
        ]
    )
    target = ask.choice(
        ["print"] * 5 + ["logger.debug", "logger.info", "logging.debug", "logging.info", "logger.warning", "log.info"]
    )
    quote = ask.source.quote()
    return f"{target}({quote}{words}{quote})", target, words


def body_of(ask, lines_max=60):
    function, parent, f = ask.drawn_function(lines_max)
    at, indent = body_start(function, ask.source)
    return function, f, at, " " * indent


@kind(2.5)
def add_first_line(ask):
    function, f, at, indent = body_of(ask)
    line, target, words = log_line(ask, function.name)
    forms = [
        "add {line} at the [start|beginning|top] of {f}",
        "[insert|put] {line} at the [start|beginning|top] of {f}",
        "insert {line} as the first line of [the body of|] {f}",
        "[start|begin] {f} with {line}",
        "at the [start|beginning|top] of {f}, [add|insert|put] {line}",
        "={f} should [start|begin] with {line}",
        "[add|insert] this line at the [start|top] of {f}: {line}",
        "make {line} the first line of {f}",
        "in {f}, [add|put] {line} [first|at the start]",
        "add {line} to the [start|top] of {f}",
    ]
    if target == "print":
        forms += [
            "print {words} at the [start|beginning|top] of {f}",
            "make {f} print {words} [first|at the start]",
            "at the [start|beginning] of {f}, print {words}",
            "={f} should first print {words}",
            "add a print of {words} at the start of {f}",
        ]
    else:
        level = target.split(".")[1]
        forms += [
            f"log {{words}} with {target} at the [start|beginning] of {{f}}",
            f"add a {level} log line {{words}} [to|at the start of] {{f}} using {target.split('.')[0]}",
        ]
    said = ask.say(*forms, line=Code(line), f=f, words=Text(words))
    return said, ask.source.with_lines(at, [indent + line])


@kind(2.7)
def add_last_line(ask):
    """Adds a line at the end of a function, or before its only return."""
    function, parent, f = ask.drawn_function()
    last = function.body[-1]
    line, target, words = log_line(ask, function.name)
    indent = " " * last.col_offset
    slots = dict(line=Code(line), f=f, words=Text(words))
    returns = [n for n in ast.walk(function) if isinstance(n, ast.Return)]
    require(len(function.body) > 1 and not ask.source.lines[last.lineno - 1][: last.col_offset].strip())
    if isinstance(last, ast.Return):
        require(len(returns) == 1)
        return ask.say(
            "add {line} [before|right before|just before] the return [of|in] {f}",
            "[insert|put] {line} before the return [of|in] {f}",
            "[before|right before] the return [of|in] {f}, [add|insert] {line}",
            "[before|right before] {f} returns, [add|call] {line}",
            "in {f}, add {line} before the return [statement|]",
            "={f} should [call|have] {line} [just before it returns|before the return]",
            *(
                ["print {words} before {f} returns", "make {f} print {words} before [it returns|returning]"]
                if target == "print"
                else []
            ),
            **slots,
        ), ask.source.with_lines(first_line(last), [indent + line])
    require(not returns and not isinstance(last, (ast.Raise, ast.Pass)))
    if ask.chance(0.35):
        value = ask.choice(
            [
                "True",
                "None",
                "self" if function.args.args[:1] and function.args.args[0].arg == "self" else "0",
                "result",
            ]
        )
        value = ask.choice([a.arg for a in function.args.args if a.arg != "self"] + [value])
        return ask.say(
            "return {value} at the end of {f}",
            "make {f} return {value} [at the end|]",
            "={f} should return {value} [at the end|]",
            "add {line} [at the end of|to the end of|to] {f}",
            "[let|have] {f} return {value}",
            "at the end of {f}, [return {value}|add {line}]",
            "end {f} with {line}",
            value=Code(value),
            line=Code("return " + value),
            f=f,
        ), ask.source.with_lines(function.end_lineno, [indent + "return " + value])
    calls = [
        g.name
        for g, _, owner in ask.source.functions()
        if owner is None and g.col_offset == 0 and len(g.args.args) == len(g.args.defaults)
    ]
    if function.name in ("main", "run", "start", "setup") and [c for c in calls if c != function.name]:
        call = ask.choice([c for c in calls if c != function.name]) + "()"
        return ask.say(
            "call {call} at the end of {f}",
            "add a call of {call} at the end of {f}",
            "={f} should call {call} at the end",
            "at the end of {f}, call {call}",
            "add {call} to the end of {f}",
            call=Code(call),
            f=f,
        ), ask.source.with_lines(function.end_lineno, [indent + call])
    return ask.say(
        "add {line} at the end of {f}",
        "[insert|put|append] {line} at the [end|bottom] of {f}",
        "add {line} as the last line of {f}",
        "at the end of {f}, [add|insert|put] {line}",
        "={f} should end with {line}",
        "end {f} with {line}",
        "append {line} to {f}",
        "make {line} the last line of {f}",
        *(["print {words} at the end of {f}", "make {f} print {words} at the end"] if target == "print" else []),
        **slots,
    ), ask.source.with_lines(function.end_lineno, [indent + line])


@kind(2.2)
def add_line(ask):
    at, text = a_simple_line(ask.random, ask.source, (ast.Assign, ast.Expr, ast.AugAssign))
    a, b = ask.choice(NOUNS), ask.choice(NOUNS)
    line = ask.choice(
        [
            f"{a} = {b}",
            f"{a} = None",
            f"{a}.{ask.choice(VERBS)}({b})",
            f"print({a})",
            f"assert {a} is not None",
            f"{ask.choice(VERBS)}_{a}({b})",
            f"{a} += 1",
            f"del {a}",
            f"{a} = {ask.random.randint(0, 99)}",
            f"{a} = []",
        ]
    )
    after = ask.chance(0.7)
    put = at + 1 if after else at
    return ask.say(
        ADD + " {line} {side} the line {text}",
        "[insert|add|put] {line} {side} {text}",
        "{side} [the line|] {text}, [add|insert] {line}",
        "[add|insert] the line {line} {side} {text}",
        "=the new line {line} should [come|stand] {side} {text}",
        "[add|insert] a line {side} {text}: {line}",
        "{side} {text} [add|insert|put] {line}",
        line=Code(line),
        text=Code(text),
        side=ask.choice(["after", "below", "right after"] if after else ["before", "above", "right before"]),
    ), ask.source.with_lines(put, [" " * indent_of(ask.source.lines[at]) + line])


@kind(3.6)
def add_guard(ask):
    function, f, at, indent = body_of(ask)
    argument = ask.choice([a.arg for a in function.args.args if a.arg not in ("self", "cls")])
    test, plain = ask.choice(
        [
            (f"{argument} is None", "{x} is None"),
            (f"not {argument}", "{x} is [empty|falsy|not set]"),
            (f"{argument} < 0", "{x} is negative"),
            (f"{argument} == 0", "{x} is [0|zero]"),
        ]
    )
    words = "{test}" if ask.chance(0.5) else plain
    if ask.chance(0.6):
        value = ask.choice(["None", "False", "[]", "0", argument, "{}", "True", "-1", '""'])
        action = f"return {value}"
        does, verb_ing = "return {value}", "returning {value}"
    else:
        error = ask.choice(EXCEPTIONS[:3])
        quote = ask.source.quote()
        message = ask.choice(
            [f"{argument} is required", f"invalid {argument}", f"missing {argument}", f"bad {argument}"]
        )
        value = f"{error}({quote}{message}{quote})"
        action, does, verb_ing = f"raise {value}", "raise {value}", "raising {value}"
    templates = [
        f"at the start of {{f}}, {does} if {words}",
        f"make {{f}} {does} [when|if] {words}",
        f"in {{f}}, {does} [when|if] {words}",
        f"={{f}} should {does} [when|if] {words}",
        f"[add|insert] a [guard|check] to {{f}}: if {words}, {does}",
        f"[add|insert] a [guard|check] at the [start|top] of {{f}} [that|to] {does} if {words}".replace(
            "[that|to]", "to"
        ),
        f"{does} [early |]from {{f}} [when|if] {words}"
        if action.startswith("return")
        else f"{does} in {{f}} [when|if] {words}",
        f"=if {words}, {{f}} should {does}",
        f"guard {{f}} by {verb_ing} [when|if] {words}",
    ]
    said = ask.say(*templates, f=f, value=Code(value), test=Code(test), x=Name(argument))
    return said, ask.source.with_lines(at, [indent + f"if {test}:", indent + "    " + action])
