"""Kinds of edits that change calls, annotations, docstrings and comments."""
import ast
import re
import tokenize

from edit_request import kind
from python_source import docstring_node, require
from vocabulary import NOUNS, TYPES, a_sentence
from wordings import Code, Name, Text
from edits_values import other_value


@kind(2.4)
def add_argument(ask):
    """Adds a keyword argument to the only call of a function, or to all of them."""
    source = ask.source
    calls = [n for n in source.nodes(ast.Call) if isinstance(n.func, (ast.Name, ast.Attribute))]
    node = ask.choice([n for n in calls if n.lineno == n.end_lineno])
    called = source.text_of(node.func)
    require(re.fullmatch(r"[\w.]{3,40}", called))
    same = [n for n in calls if ast.unparse(n.func) == called]
    require(len(same) <= 4 and all(n.lineno == n.end_lineno for n in same))
    argument = ask.random.choice(
        [
            "timeout=10",
            "timeout=30",
            "timeout=5",
            'encoding="utf-8"',
            "check=True",
            "indent=2",
            "flush=True",
            "verbose=True",
            "strict=False",
            "reverse=True",
            "exist_ok=True",
            "debug=True",
            "default=None",
            f"{ask.random.choice(NOUNS)}=None",
            f"{ask.random.choice(NOUNS)}={ask.random.randint(0, 99)}",
        ]
    )
    argument = argument.replace('"', source.quote())
    key = argument.split("=")[0]
    pairs = []
    for n in same:
        text = source.text_of(n)
        require(
            key not in [k.arg for k in n.keywords] and None not in [k.arg for k in n.keywords] and text.endswith(")")
        )
        require(not any(isinstance(a, ast.GeneratorExp) for a in n.args) and not text.endswith(",)"))
        pairs.append((n, text[:-1] + (", " if n.args or n.keywords else "") + argument + ")"))
    inner = [m for n in same for m in ast.walk(n) if m is not n and m in same]
    require(not inner)
    many = len(same) > 1
    return ask.say(
        "add {arg} to [the call of|the call to|calls of] {called}"
        if not many
        else "add {arg} to [all calls of|all calls to|every call of|each call to|the calls of] {called}",
        "pass {arg} to {called}" if not many else "pass {arg} to {called} [everywhere|in every call|in all calls]",
        "pass {arg} in the call [of|to] {called}" if not many else "pass {arg} in [all|the] calls [of|to] {called}",
        "call {called} with {arg} [as well|too|]" if not many else "call {called} with {arg} [everywhere|each time]",
        "give the {called} call the [argument|keyword argument|keyword] {arg}"
        if not many
        else "give all {called} calls the [argument|keyword argument] {arg}",
        "=the call [of|to] {called} should [have|pass|get] {arg}"
        if not many
        else "=all calls [of|to] {called} should [have|pass|get] {arg}",
        "add the [argument|keyword argument] {arg} to [the call of|the call to] {called}"
        if not many
        else "add the [argument|keyword argument] {arg} to all calls of {called}",
        arg=Code(argument),
        called=ask.name(called, ask.random.choice(["", "", "()"])),
    ), source.with_replaced(pairs)


@kind(3.3)
def change_argument(ask):
    source = ask.source
    node = ask.choice([n for n in source.nodes(ast.Call) if n.lineno == n.end_lineno and (n.args or n.keywords)])
    called = source.text_of(node.func)
    require(
        re.fullmatch(r"[\w.]{2,40}", called) and len(re.findall(rf"(?<![\w.]){re.escape(called)}\(", source.text)) == 1
    )
    keys = [(k.arg, k.value) for k in node.keywords if k.arg and isinstance(k.value, (ast.Constant, ast.Name))]
    plain = [(None, a) for a in node.args if isinstance(a, (ast.Constant, ast.Name))]
    key, value = ask.choice(keys + plain)
    old = source.text_of(value)
    require(len(old) < 40 and "`" not in old and source.text_of(node).count(old) == 1)
    quote = old[0] if old[0] in "\"'" else '"'
    new = other_value(ask.random, value, quote) if isinstance(value, ast.Constant) else ask.random.choice(NOUNS)
    require(new and new != old)
    slots = dict(
        called=ask.name(called, ask.random.choice(["", "()"])), old=Code(old), new=Code(new), key=Name(key or "x")
    )
    if key and ask.chance(0.7):
        said = ask.say(
            "[change|set] {key} to {new} in the call [of|to] {called}",
            "in the call [of|to] {called}, [change|set] {key} to {new}",
            "pass {key}={new} to {called} [instead of|not] {key}={old}",
            "call {called} with {key}={new}",
            "={called} should be called with {key}={new}",
            **slots,
        )
    else:
        said = ask.say(
            "pass {new} instead of {old} to {called}",
            "pass {new} to {called} [instead of|not] {old}",
            "in the call [of|to] {called}, [change {old} to|replace {old} with] {new}",
            "change the argument {old} [of|in the call to] {called} to {new}",
            "call {called} with {new} instead of {old}",
            "={called} should [get|be called with] {new} instead of {old}",
            "replace the argument {old} of {called} [with|by] {new}",
            **slots,
        )
    return said, source.with_replaced([(value, new)])


@kind(2.8)
def annotate_parameter(ask):
    function, _, f = ask.drawn_function()
    free = [a for a in function.args.args if a.annotation is None and a.arg not in ("self", "cls")]
    node = ask.choice(free)
    defaults = dict(zip([a.arg for a in function.args.args[::-1]], function.args.defaults[::-1]))
    annotation = ask.choice(TYPES + ["list[str]", "dict[str, int]", "str | None", "Path"])
    pairs = [(node, f"{node.arg}: {annotation}")]
    text = ask.source.with_replaced(pairs)
    if node.arg in defaults:
        line = text.split("\n")[node.lineno - 1]
        text = text.split("\n")
        text[node.lineno - 1] = re.sub(rf"(\b{node.arg}: {re.escape(annotation)})=", r"\1 = ", line, count=1)
        text = "\n".join(text)
    return (
        ask.say(
            "annotate {x} [of|in] {f} [as|with] {t}",
            "add the type [hint|annotation|] {t} to {x} [of|in] {f}",
            "add [a type hint|a type annotation] [for|to] {x} in {f}: {t}",
            "in {f}, annotate {x} [as|with] {t}",
            "=in {f}, {x} should [be annotated as|have the type hint] {t}",
            "give {x} [of|in] {f} the type [hint|annotation|] {t}",
            "declare {x} [of|in] {f} as {t}",
            "={x} of {f} should have the type {t}",
            "type {x} in {f} as {t}",
            x=ask.thing("parameter", node.arg) if ask.chance(0.6) else ask.thing("argument", node.arg),
            t=Code(annotation),
            f=f,
        ),
        text,
    )


@kind(2.5)
def change_annotation(ask):
    function, _, f = ask.drawn_function()
    old = [(a.arg, a.annotation) for a in function.args.args if a.annotation is not None]
    name, node = ask.choice(old + ([("", function.returns)] if function.returns is not None else []))
    old = ask.source.text_of(node)
    new = ask.choice([t for t in TYPES + ["list[str]", "str | None"] if t != old])
    slots = dict(f=f, old=Code(old), new=Code(new), x=Name(name or "x"))
    if name:
        said = ask.say(
            "change the type [of|hint of|annotation of] {x} in {f} to {new}",
            "change the type of {x} in {f} from {old} to {new}",
            "in {f}, [change|set] the [type|type hint|annotation] of {x} to {new}",
            "={x} [in|of] {f} should be [a|of type] {new} [instead of|not] {old}",
            "=in {f}: {x}: {old} [->|=>] {x}: {new}",
            "={new} instead of {old} for {x} in {f}",
            "annotate {x} in {f} as {new} instead of {old}",
            **slots,
        )
    else:
        said = ask.say(
            "change the return [type|annotation|type hint] of {f} to {new}",
            "change the return type of {f} from {old} to {new}",
            "={f} should [return|be annotated to return] {new} in its annotation [instead of|not] {old}",
            "=the return type of {f} should be {new}",
            "set the return [type|annotation] of {f} to {new}",
            "={new} instead of {old} as the return type of {f}",
            **slots,
        )
    return said, ask.source.with_replaced([(node, new)])


@kind(7.1)
def change_docstring(ask):
    function, _, f = ask.drawn_function()
    node = docstring_node(function)
    require(node and node.lineno == node.end_lineno)
    old = ask.source.text_of(node)
    require(re.fullmatch(r'"""[^"\\]*"""|\'\'\'[^\'\\]*\'\'\'|"[^"\\]*"', old))
    mark, new = ('"""' if old.startswith('"""') else "'''" if old.startswith("'''") else '"'), a_sentence(ask.random)
    return ask.say(
        "[change|set|update] the docstring of {f} to {new}",
        "replace the docstring of {f} [with|by] {new}",
        "[rewrite|rephrase] the docstring of {f} as {new}",
        "in {f}, [change|set|update] the docstring to {new}",
        "=new docstring [for|of] {f}: {new}",
        "give {f} the docstring {new} [instead|]",
        "[change|update] the docstring of {f}: {new}",
        "=the docstring of {f} should [be|say|read] {new}",
        "={f} should have the docstring {new}",
        "use {new} as the docstring of {f} [instead|]",
        "make the docstring of {f} [say|read] {new}",
        f=f,
        new=Text(new),
    ), ask.source.with_replaced([(node, mark + new + mark)])


@kind(2.2)
def change_comment(ask):
    """Changes, or removes, one comment that is quoted."""
    source = ask.source
    comments = [t for t in source.tokens if t.type == tokenize.COMMENT and re.fullmatch(r"# ?[^`\"]{4,60}", t.string)]
    token = ask.choice(comments)
    require([t.string for t in source.tokens].count(token.string) == 1)
    row, at, lines = token.start[0] - 1, token.start[1], list(source.lines)
    words, alone = token.string.lstrip("# "), not lines[row][: token.start[1]].strip()
    old = Code(token.string) if ask.chance(0.5) else Text(words)
    if ask.chance(0.4):
        if alone:
            del lines[row]
        else:
            lines[row] = lines[row][:at].rstrip()
        return ask.say(
            "[remove|delete|drop] the comment {old}",
            "[remove|delete|drop] the comment [that says|saying|which says] {old}",
            "[get rid of|take out] the comment {old}",
            "=the comment {old} [should go|is not needed any more, remove it|is outdated, delete it|can go]",
            old=old,
        ), "\n".join(lines)
    new_words = a_sentence(ask.random).rstrip(".")
    lines[row] = lines[row][:at] + "# " + new_words
    return ask.say(
        "[change|update] the comment {old} to {new}",
        "replace the comment {old} [with|by] {new}",
        "=the comment {old} should [be|say|read] {new}",
        "make the comment {old} [say|read] {new}",
        "[change|update] the comment [that says|saying] {old} to {new}",
        old=old,
        new=Code("# " + new_words) if isinstance(old, Code) else Text(new_words),
    ), "\n".join(lines)
