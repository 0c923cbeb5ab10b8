"""Kinds of edits that change values: numbers, strings, operators, defaults, entries, conditions and the like."""
import ast
import re
import tokenize

from edit_request import kind
from python_source import require
from vocabulary import EXCEPTIONS, NOUNS, a_sentence
from wordings import SMALL_WORDS, Code, Name, Text

ROUND_NUMBERS = [
    2,
    5,
    10,
    20,
    25,
    30,
    50,
    60,
    64,
    80,
    100,
    120,
    128,
    200,
    250,
    256,
    300,
    500,
    512,
    1000,
    1024,
    3600,
    5000,
    8080,
]
FULL_OPERATORS = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
PLAIN_STRING = re.compile(r"""(["'])([^"'\\{}%\n]{2,40})\1""")


def new_number(random, old):
    if "." in old:
        return f"{random.random() * random.choice([1, 10]):.{random.choice([1, 2])}f}"
    return str(random.choice([random.randint(0, 9), random.randint(10, 99), *random.choices(ROUND_NUMBERS, k=2)]))


def other_string(random, old):
    way = random.random()
    if way < 0.15:
        return old.lower() if old.isupper() else old.upper()
    if way < 0.3:
        return old + random.choice(["!", "_v2", " (new)", ".bak", "-" + random.choice(NOUNS)])
    file = re.fullmatch(r"[\w./-]+(\.\w{2,4})", old)
    if file and way < 0.8:
        return "_".join(random.sample(NOUNS, random.choice([1, 2]))) + random.choice(
            [file[1], file[1], ".json", ".txt"]
        )
    return a_sentence(random).rstrip(".") if " " in old else "_".join(random.sample(NOUNS, random.choice([1, 2])))


def other_value(random, node, quote='"'):
    """Returns other code of the same type for a constant, or None where there is none."""
    if not isinstance(node, ast.Constant):
        return None
    value = node.value
    if isinstance(value, bool):
        return str(not value)
    if isinstance(value, (int, float)):
        return new_number(random, repr(value))
    if isinstance(value, str):
        return quote + other_string(random, value) + quote if re.fullmatch(r"[^\"'\\{}%\n]*", value) else None
    return random.choice(["0", "1", "False", "10", quote + quote]) if value is None else None


def assigned_once(source, types=(ast.Constant,)):
    """Returns (name, value node) of assignments on one line whose target no other assignment of the file has."""
    found = []
    for node in source.nodes(ast.Assign, ast.AnnAssign):
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        if isinstance(node.value, types) and node.lineno == node.end_lineno:
            if isinstance(target, ast.Name):
                found.append((target.id, node.value))
            elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self":
                found.append(("self." + target.attr, node.value))
    written = [x.strip() for x in re.findall(r"^\s*(?:self\.)?\w+\s*(?=[-+*/|&]?=[^=]|:.*=[^=])", source.text, re.M)]
    return [(name, value) for name, value in found if written.count(name) == 1]


SETTINGS = (
    "set {x} to {new}",
    "set {x} to {new}",
    "change {x} to {new}",
    "change {x} to {new}",
    "change {x} from {old} to {new}",
    "[change|update] the value of {x} to {new}",
    "[change|update] {x} [from {old} to|to be] {new}",
    "make {x} {new} [instead of {old}|]",
    "={x} should be {new} [instead of {old}|not {old}|]",
    "={x} [=|->|=>] {new}",
    "={x}: {old} [->|=>|to] {new}",
    "={new} instead of {old} for {x}",
    "use {new} [for|as] {x} [instead of {old}|]",
    "use {new} as the value of {x}",
    "[update|adjust] {x} to {new}",
)


def spoken_name(ask, name):
    """Returns a constant's or attribute's name in words, as "the retry limit", where no other name has those words."""
    words = name.split(".")[-1].strip("_").split("_")
    if not all(word.isalpha() and len(word) > 1 for word in words) or "".join(words).lower() in SMALL_WORDS:
        return None
    others = {n.lower().strip("_") for n in ask.source.names()} - {"_".join(words).lower()}
    if any(set(words_of.split("_")) >= {word.lower() for word in words} for words_of in others):
        return None
    said = " ".join(words).lower()
    return said if ask.chance(0.3) and len(words) > 1 else f"the {said}" + ask.random.choice(["", "", "", " value"])


def setting(ask, what, name, old, new):
    spoken = spoken_name(ask, name) if what and ask.chance(0.2) else None
    return ask.say(*SETTINGS, x=spoken or (ask.thing(what, name) if what else ask.name(name)), old=old, new=new)


@kind(30)
def set_value(ask):
    """Sets a constant, variable or attribute that the file assigns once."""
    source = ask.source
    found = [
        (n, v) for n, v in assigned_once(source) if isinstance(v.value, (int, float)) and not isinstance(v.value, bool)
    ]
    name, node = ask.choice(found)
    old = source.text_of(node)
    new = new_number(ask.random, old)
    require(re.fullmatch(r"[\d.]{1,8}", old) and new != old)
    what = "attribute" if "." in name else "constant" if name.isupper() else "variable"
    return setting(ask, what, name, old, new), source.with_replaced([(node, new)])


@kind(66)
def set_boolean(ask):
    source = ask.source
    name, node = ask.choice([(n, v) for n, v in assigned_once(source) if isinstance(v.value, bool)])
    old, new = str(node.value), str(not node.value)
    what = "flag" if ask.chance(0.3) else "attribute" if "." in name else "constant" if name.isupper() else "variable"
    if ask.chance(0.35):
        said = ask.say(
            "[flip|toggle|invert|switch] {x}",
            "[turn|switch] {x} {state}",
            "{able} {x}",
            "[flip|toggle] the [boolean|value of|flag] {x}",
            "=[turn|switch] {state} {x}",
            x=Name(name),
            state="on" if new == "True" else "off",
            able="enable" if new == "True" else "disable",
        )
        return said, source.with_replaced([(node, new)])
    low = ask.chance(0.15)
    return setting(ask, what, name, old.lower() if low else old, new.lower() if low else new), source.with_replaced(
        [(node, new)]
    )


@kind(16)
def set_string(ask):
    source = ask.source
    name, node = ask.choice([(n, v) for n, v in assigned_once(source) if isinstance(v.value, str)])
    require(PLAIN_STRING.fullmatch(source.text_of(node)))
    new, quote = other_string(ask.random, node.value), source.text_of(node)[0]
    require(new != node.value and "`" not in node.value)
    what = "attribute" if "." in name else "constant" if name.isupper() else "variable"
    said = setting(ask, what, name, ask.text(node.value), ask.text(new))
    return said, source.with_replaced([(node, quote + new + quote)])


@kind(88)
def set_version(ask):
    source = ask.source
    nodes = [
        n
        for n in source.nodes(ast.Constant)
        if isinstance(n.value, str) and re.fullmatch(r"v?\d+(\.\d+){1,2}", n.value)
    ]
    node = ask.choice(nodes)
    require([n.value for n in nodes].count(node.value) == 1 and PLAIN_STRING.fullmatch(source.text_of(node)))
    parts = [int(x) for x in node.value.lstrip("v").split(".")]
    at = ask.random.randrange(len(parts))
    parts = parts[:at] + [parts[at] + ask.random.choice([1, 1, 1, 2, 3])] + [0] * (len(parts) - at - 1)
    new = "v" * node.value.startswith("v") + ".".join(map(str, parts))
    quote = source.text_of(node)[0]
    plain = len(nodes) == 1
    old_text, new_text = (node.value, new) if ask.chance(0.6) else (ask.text(node.value), ask.text(new))
    return ask.say(
        *(
            [
                "[bump|set|change|update|raise] [the version|version|the version number] to {new}",
                "[bump|update] the version from {old} to {new}",
                "=the version should be {new}",
                "=version [->|=>|=] {new}",
                "=new version[:| is] {new}",
                "change the version string to {new}",
            ]
            if plain
            else []
        ),
        "[bump|change|update] version {old} to {new}",
        "[bump|change|update] the version {old} to {new}",
        "[bump|change] the version from {old} to {new}",
        "=version {old} [->|=>] {new}",
        "=the version {old} should be {new}",
        "replace [version|the version] {old} [with|by] {new}",
        old=old_text,
        new=new_text,
    ), source.with_replaced([(node, quote + new + quote)])


@kind(7.2)
def number(ask):
    source = ask.source
    numbers = [t for t in source.tokens if t.type == tokenize.NUMBER and re.fullmatch(r"\d{1,6}|\d+\.\d+", t.string)]
    token = ask.choice(numbers)
    old, row = token.string, token.start[0] - 1
    new, line = new_number(ask.random, old), source.lines[row]
    require(new != old)
    stripped = line.strip()
    if [t.string for t in numbers].count(old) == 1:
        said = ask.say(
            "change the [number|constant|value|] {old} to {new}",
            "replace the [number|constant|value] {old} [with|by] {new}",
            "replace {old} [with|by] {new}",
            "use {new} instead of {old}",
            "change {old} to {new}",
            "={old} [->|=>|should be] {new}",
            "={new} instead of {old}",
            "make [the {old}|{old}] {a_new}",
            "[update|raise|set] the {old} to {new}"
            if float(new) > float(old)
            else "[update|lower|set] the {old} to {new}",
            old=old,
            new=new,
            a_new=new,
        )
    else:
        require([x.strip() for x in source.lines].count(stripped) == 1 and line.count(old) == 1)
        require(len(stripped) < 80 and "`" not in stripped)
        said = ask.say(
            "in the line {line}, change {old} to {new}",
            "[change|turn] {old} [to|into] {new} in [the line|] {line}",
            "in {line} [use|put] {new} instead of {old}",
            "replace {old} with {new} in [the line|] {line}",
            "={line}: {old} [->|=>|should be] {new}",
            line=Code(stripped),
            old=old,
            new=new,
        )
    lines = list(source.lines)
    lines[row] = line[: token.start[1]] + new + line[token.end[1] :]
    return said, "\n".join(lines)


def some_words(ask, text):
    """Returns some words of a text as a user remembers them, where no other line of the file has them all; or None."""
    words = re.findall(r"[A-Za-z]{2,}", text)
    if not 3 <= len(words) <= 12 or "{" in text or "%" in text:
        return None
    count = ask.random.randint(2, min(4, len(words)))
    at = ask.random.randrange(len(words) - count + 1)
    some = [word.lower() for word in words[at : at + count]]
    if set(some) <= SMALL_WORDS:
        return None
    having = [line for line in ask.source.lines if set(some) <= set(re.findall(r"[a-z]{2,}", line.lower()))]
    return " ".join(some) if len(having) == 1 else None


@kind(7.5)
def string(ask):
    source = ask.source
    matches = [PLAIN_STRING.fullmatch(t.string) for t in source.tokens if t.type == tokenize.STRING]
    old = ask.choice(sorted(match[2] for match in matches if match))
    new = other_string(ask.random, old)
    require(new != old and "`" not in old)

    def replaced(token):
        match = PLAIN_STRING.fullmatch(token.string) if token.type == tokenize.STRING else None
        return match[1] + new + match[1] if match and match[2] == old else None

    text, count = source.replace_tokens(replaced)
    require(0 < count < 5 and source.text.count(old) == count and not old.startswith("__"))
    if ask.chance(0.3) and (some := some_words(ask, old)):
        what = ask.random.choice(["message", "message", "text", "string", "line"])
        return (
            ask.say(
                f"[change|turn] the {{some}} {what} [to|into] {{new}}",
                f"=the {{some}} {what} should [be|say|read] {{new}}",
                f"make the {{some}} {what} [say|] {{new}}",
                f"=the {what} about {{some}} should [be|say|read] {{new}}",
                f"replace the {{some}} {what} [with|by] {{new}}",
                some=some,
                new=Text(new),
            ),
            text,
        )
    what = (
        "route"
        if old.startswith("/")
        else "URL"
        if "://" in old
        else "file name"
        if re.fullmatch(r"\w+\.\w{2,4}", old)
        else "message"
    )
    return (
        ask.say(
            f"change the [string|text|{what}|{what}|literal|] {{old}} to {{new}}",
            f"replace the {what} {{old}} [with|by] {{new}}",
            "change {old} to {new}",
            "replace [the string|the text|] {old} [with|by] {new}",
            "use [the string|] {new} instead of {old}",
            "={old} should be {new}",
            "={old} should [say|read] {new}" if " " in old else "={old} [->|=>] {new}",
            "={old} [->|=>] {new}",
            "={new} instead of {old}",
            old=Text(old),
            new=Text(new),
        ),
        text,
    )


@kind(4.3)
def quotes(ask):
    old, new, from_, to = ask.random.choice([("'", '"', "single", "double"), ('"', "'", "double", "single")])
    plain = re.compile(old + r"""[^"'\\\n]*""" + old)
    text, count = ask.source.replace_tokens(
        lambda t: new + t.string[1:-1] + new if t.type == tokenize.STRING and plain.fullmatch(t.string) else None
    )
    require(count >= 2)
    return (
        ask.say(
            "[change|convert|turn] [all|the|all the|] {a} quotes [to|into] {b} quotes",
            "use {b} quotes [instead of|not] {a} quotes",
            "use {b} quotes [for all strings|everywhere|for strings|throughout]",
            "[convert|change|switch] all {a}-quoted strings to {b} quotes",
            "switch [from {a} to {b} quotes|to {b} quotes]",
            "replace {a} quotes [with|by] {b} quotes",
            "=all strings should [have|use] {b} quotes",
            "={b} quotes [instead of {a} ones|everywhere]",
            "={a} quotes [->|=>] {b} quotes",
            "make [all|the] quotes {b}",
            a=from_,
            b=to,
        ),
        text,
    )


@kind(9.7)
def operator(ask):
    pairs = "== !=,!= ==,<= <,>= >,< <=,> >=,and or,or and,+= -=,+ -,* +,True False,False True"
    old, new = ask.random.choice([pair.split(" ") for pair in pairs.split(",")])
    text, count = ask.source.replace_tokens(
        lambda t: new if t.string == old and t.type in (tokenize.OP, tokenize.NAME) else None
    )
    require(0 < count < 12)
    every = (
        "change [every|each] {old} to {new}",
        "replace [all|every] {old} [with|by] {new}",
        "replace {old} with {new} everywhere",
    )
    every += (
        "[change|turn] all {old} [into|to] {new}",
        "use {new} instead of {old} everywhere",
        "=all {old} should be {new}",
    )
    one = (
        "change [the|] {old} to {new}",
        "replace [the|] {old} with {new}",
        "use {new} instead of {old}",
        "={old} [->|=>] {new}",
    )
    said = ask.say(*(every if count > 1 else every + one), old=Code(old), new=Code(new))
    return said, text


@kind(8)
def comparison(ask):
    """Changes the only comparison in a function, or that of a line that is quoted."""
    source = ask.source
    function, _, f = ask.drawn_function()
    found = [
        n
        for n in ast.walk(function)
        if isinstance(n, ast.Compare) and len(n.ops) == 1 and type(n.ops[0]) in FULL_OPERATORS
    ]
    node = ask.choice(found)
    old = FULL_OPERATORS[type(node.ops[0])]
    new = ask.choice([op for op in FULL_OPERATORS.values() if op != old])
    text = source.text_of(node)
    left, right = source.text_of(node.left), source.text_of(node.comparators[0])
    require(text == f"{left} {old} {right}")
    slots = dict(f=f, old=Code(old), new=Code(new))
    if [FULL_OPERATORS.get(type(n.ops[0])) for n in ast.walk(function) if isinstance(n, ast.Compare)].count(
        old
    ) == 1 and ask.chance(0.6):
        said = ask.say(
            "in {f}, [change|turn] {old} [to|into] {new}",
            "in {f}, use {new} instead of {old}",
            "in {f}, replace {old} with {new}",
            "[change|turn] [the comparison|the operator] {old} in {f} [to|into] {new}",
            "use {new} instead of {old} in {f}",
            "change the {old} in {f} to {new}",
            "=the comparison in {f} should be {new} [instead of|not] {old}"
            if len(found) == 1
            else "use {new} in place of {old} in {f}",
            **slots,
        )
    else:
        require(source.text.count(text) == 1 and len(text) < 60 and "`" not in text)
        said = ask.say(
            "[change|turn] {a} [to|into] {b}",
            "change the [condition|comparison|check] {a} to {b}",
            "replace {a} [with|by] {b}",
            "in {f}, replace {a} with {b}",
            "[check|test] {b} instead of {a} in {f}",
            "={a} should be {b}",
            "={a} [->|=>] {b}",
            a=Code(text),
            b=Code(f"{left} {new} {right}"),
            f=f,
        )
    return said, source.with_replaced([(node, f"{left} {new} {right}")])


@kind(4.1)
def condition(ask):
    """Changes the condition of an if, elif or while."""
    source = ask.source
    node = ask.choice([n for n in source.nodes(ast.If, ast.While) if n.test.lineno == n.test.end_lineno])
    old = source.text_of(node.test)
    require(3 < len(old) <= 50 and "`" not in old and "__name__" not in old)
    word = "while" if isinstance(node, ast.While) else "if"
    require(len(re.findall(rf"\b{word} {re.escape(old)}:", source.text)) == 1)
    name = re.match(r"(not )?([\w.]+)", old)
    require(name)
    more = ask.random.choice(
        [
            f"{name[2]} is not None",
            f"not {name[2]}",
            f"len({name[2]}) > {ask.random.randint(0, 9)}",
            f"{name[2]} is None",
            f"{old} and {name[2]}",
            f"{old} or {ask.random.choice(NOUNS)}",
            f"{ask.random.choice(NOUNS)} and {old}",
        ]
    )
    require(more != old and (" or " not in old) and (" and " not in old))
    return ask.say(
        "change the condition {old} to {new}",
        "[change|set|update] the {word} condition [from {old}|{old}] to {new}",
        "[use|take] {new} as the condition [instead of|not] {old}",
        "=the {word} should [test|check|ask for|depend on] {new}, not {old}",
        "change the condition of the {word} from {old} to {new}",
        "change {line} to {line_new}",
        "replace the condition {old} [with|by] {new}",
        "[check|test] {new} instead of {old} in the {word}",
        "=the condition {old} should be {new}",
        "=the {word} should check {new} instead of {old}",
        "={line} [->|=>|should be] {line_new}",
        "make the {word} [check|test] {new} [instead of|not] {old}",
        word=word,
        old=Code(old),
        new=Code(more),
        line=Code(f"{word} {old}"),
        line_new=Code(f"{word} {more}"),
    ), source.with_replaced([(node.test, more)])


@kind(23)
def default_value(ask):
    function, _, f = ask.drawn_function()
    arguments = function.args
    with_default = list(zip(arguments.args[::-1], arguments.defaults[::-1])) + list(
        zip(arguments.kwonlyargs, arguments.kw_defaults)
    )
    argument, node = ask.choice([pair for pair in with_default if isinstance(pair[1], ast.Constant)])
    old = ask.source.text_of(node)
    quote = old[0] if old[0] in "\"'" else '"'
    new = other_value(ask.random, node, quote)
    require(new is not None and new != old and "`" not in old)
    return ask.say(
        "change the default [value|] of {x} in {f} to {new}",
        "change the default of {x} in {f} from {old} to {new}",
        "set the default [value of|for] {x} in {f} to {new}",
        "in {f}, [change|set] the default of {x} to {new}",
        "=in {f}, {x} should default to {new}",
        "in {f}, make {x} default to {new}",
        "make {x} default to {new} in {f}",
        "make {new} the default [of|for] {x} in {f}",
        "={x} of {f} should default to {new} [instead of {old}|]",
        "=the default of {x} in {f} should be {new}",
        "=default {x} to {new} in {f}",
        "use {new} as the default [of|for] {x} in {f}",
        x=ask.thing("parameter", argument.arg) if ask.chance(0.5) else ask.thing("argument", argument.arg),
        f=f,
        old=Code(old) if ask.chance(0.4) else old,
        new=Code(new) if ask.chance(0.4) else new,
    ), ask.source.with_replaced([(node, new)])


@kind(5.1)
def return_value(ask):
    function, _, f = ask.drawn_function()
    returns = [n for n in ast.walk(function) if isinstance(n, ast.Return)]
    node = ask.choice([n for n in returns if n.value is not None and n.lineno == n.end_lineno])
    old = ask.source.text_of(node.value)
    require(len(old) <= 40 and "`" not in old and [ast.unparse(n) for n in returns].count(ast.unparse(node)) == 1)
    name = ask.choice([a.arg for a in function.args.args] or ["None"])
    new = ask.random.choice(
        [
            "None",
            "[]",
            "{}",
            "True",
            "False",
            "0",
            "1",
            "-1",
            '""',
            name,
            f"({old}, None)",
            f"list({old})",
            f"str({old})",
            f"not {old}" if re.fullmatch(r"[\w.]+", old) else "None",
        ]
    )
    require(new != old)
    only = (
        "make {f} return {new}",
        "={f} should return {new}",
        "return {new} from {f}",
        "[change|set] the return value of {f} to {new}",
    )
    return ask.say(
        *(only if len(returns) == 1 else ()),
        "in {f}, return {new} instead of {old}",
        "[have|let] {f} return {new} [instead of|not|rather than] {old}",
        "in {f}, replace the return value {old} [by|with] {new}",
        "in {f}, change {ret_old} to {ret_new}",
        "return {new} instead of {old} in {f}",
        "make {f} return {new} [instead of|not] {old}",
        "={f} should return {new} [instead of|not] {old}",
        "change {ret_old} [to|into] {ret_new} in {f}",
        "replace {ret_old} with {ret_new} in {f}",
        "={ret_old} [->|=>] {ret_new} in {f}",
        "=in {f}: {ret_old} [->|=>] {ret_new}",
        f=f,
        old=Code(old),
        new=Code(new),
        ret_old=Code("return " + old),
        ret_new=Code("return " + new),
    ), ask.source.with_replaced([(node.value, new)])


@kind(20)
def exception_type(ask):
    source = ask.source
    raised = [
        n.exc.func for n in source.nodes(ast.Raise) if isinstance(n.exc, ast.Call) and isinstance(n.exc.func, ast.Name)
    ]
    raised += [n.exc for n in source.nodes(ast.Raise) if isinstance(n.exc, ast.Name) and n.exc.id[:1].isupper()]
    caught = [n.type for n in source.nodes(ast.ExceptHandler) if isinstance(n.type, ast.Name)]
    nodes, verb = ask.choice([(raised, "raise"), (caught, "catch")])
    node = ask.choice(nodes)
    old, same = node.id, [n for n in nodes if n.id == node.id]
    new = ask.choice([e for e in EXCEPTIONS if e != old])
    if len(same) > 1:
        holders = [f for f, _, _ in source.functions() if f.lineno <= node.lineno <= f.end_lineno]
        require(holders)
        function = holders[-1]
        same = [n for n in same if function.lineno <= n.lineno <= function.end_lineno]
        require(len(same) == 1 and source.is_only(function))
        owner = next(o for f, _, o in source.functions() if f is function)
        place = " in " + ask.function(function, owner)
    else:
        place = ""
    return ask.say(
        "{verb} {new} instead of {old}{place}",
        "{verb} {new}, not {old}{place}",
        "[switch|change] from {old} to {new} in the [exception|error] that we {verb}{place}",
        "{verb} {a} {new} [rather than|not|instead of] {b} {old}{place}",
        *(
            [
                "={f} should {verb} {new} [instead of|rather than|not] {old}",
                "={f}: [{verb} |]{new} [instead of|rather than|not] {old}",
                "in {f}, {verb} {new} [instead of|rather than|not] {old}",
                "make {f} {verb} {new} instead of {old}",
            ]
            if place
            else []
        ),
        "change the exception [raised|type|]{place} from {old} to {new}"
        if verb == "raise"
        else "change the exception [caught|type|]{place} from {old} to {new}",
        "change {word} {old} to {word} {new}{place}" if verb == "catch" else "change raise {old} to raise {new}{place}",
        "replace {old} with {new}{place}" if source.count_of(old) == 1 else "{verb} {new} in place of {old}{place}",
        "[use|{verb}] {new} instead of {old}{place}" if source.count_of(old) == 1 else "{verb} {new}, not {old}{place}",
        "=it should {verb} {new} instead of {old}{place}",
        "={old} should be {new}{place}"
        if source.count_of(old) == 1
        else "=the {old} that we {verb}{place} should be {a} {new}",
        verb=verb,
        word="except",
        a="an" if new[0] in "AEIO" else "a",
        b="an" if old[0] in "AEIO" else "a",
        old=Name(old),
        new=Name(new),
        f=place.removeprefix(" in "),
        place=place,
    ), source.with_replaced([(same[0], new)])


@kind(2.4)
def base_class(ask):
    """Changes, adds or removes the only base of a class."""
    node = ask.choice([n for n in ask.source.nodes(ast.ClassDef) if len(n.bases) <= 1 and not n.keywords])
    row = node.lineno - 1
    head = re.match(r"(\s*class \w+)(\((\w*(?:\.\w+)*)\))?:$", ask.source.lines[row])
    require(head)
    old, new = head[3] or "", ask.choice(NOUNS).capitalize() + ask.choice(
        ["Base", "Mixin", "Model", "Node", "Error", "Handler"]
    )
    slots = dict(c=ask.class_(node.name), old=Name(old or "object"), new=Name(new))
    if old and ask.chance(0.25):
        said = ask.say(
            "remove the base class [{old}|] [of|from] {c}",
            "drop the base class {old} from {c}",
            "={c} should not inherit from {old} [any more|anymore|]",
            "={c} should have no base class",
            **slots,
        )
        base = ""
    elif old:
        said = ask.say(
            "change the [base class|parent class|superclass|base] of {c} [to|from {old} to] {new}",
            "make {c} [inherit from|extend|a subclass of|derive from] {new} instead of {old}",
            "={c} should [inherit from|extend|derive from|subclass] {new} [instead of|not] {old}",
            "replace the base class {old} of {c} [with|by] {new}",
            "use {new} as the base class of {c} instead of {old}",
            **slots,
        )
        base = f"({new})"
    else:
        said = ask.say(
            "make {c} [inherit from|extend|a subclass of|derive from] {new}",
            "={c} should [inherit from|extend|derive from|subclass|be a subclass of] {new}",
            "add the [base class|parent class|superclass] {new} to {c}",
            "add {new} as [a|the] base class [of|to] {c}",
            "derive {c} from {new}",
            "[use|set] {new} as the base class of {c}",
            **slots,
        )
        base = f"({new})"
    lines = list(ask.source.lines)
    lines[row] = head[1] + base + ":"
    return said, "\n".join(lines)


@kind(4)
def replace_expression(ask):
    """Replaces an expression that the file has once."""
    source = ask.source
    nodes = [n for n in source.nodes(ast.Attribute, ast.Call, ast.Subscript, ast.BinOp) if n.lineno == n.end_lineno]
    node = ask.choice([n for n in nodes if isinstance(getattr(n, "ctx", ast.Load()), ast.Load)])
    old = source.text_of(node)
    require(
        5 < len(old) <= 44
        and "`" not in old
        and len(re.findall(rf"(?<![\w.]){re.escape(old)}(?![\w(\[.])", source.text)) == 1
    )
    require(source.text.count(old) == 1)
    a, b = ask.random.sample(NOUNS, 2)
    new = ask.choice(
        [
            f"{a}.{b}",
            f"{a}_{b}",
            f"get_{a}({b})",
            f"{a}[0]",
            f"len({a})",
            f"str({old})",
            f"{old} or None" if isinstance(node, ast.Call) else f"{a}",
            f"{a}.get({b})",
        ]
    )
    found = re.match(r"(\w+)\.(\w+)(.*)$", old)
    if found and ask.chance(0.5):
        new = ask.choice(
            [f"{found[1]}.{a}{found[3]}", f"{a}.{found[2]}{found[3]}", f"{found[1]}.{found[2]}_{a}{found[3]}"]
        )
    require(new != old)
    return ask.say(
        "replace {old} [with|by] {new}",
        "[change|turn] {old} [to|into] {new}",
        "change {old} to {new}",
        "use {new} instead of {old}",
        "use {new} [in place of|rather than|not] {old}",
        "={old} should be {new}",
        "={old} [->|=>] {new}",
        "={new} instead of {old}",
        "replace the expression {old} with {new}",
        "[write|put] {new} instead of {old}",
        old=Code(old),
        new=Code(new),
    ), source.with_replaced([(node, new)])
