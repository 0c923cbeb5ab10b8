"""Kinds of edits that give things other names."""
import ast
import re
import tokenize

from edit_request import kind
from python_source import RESERVED, Source, require
from vocabulary import NOUNS, new_name
from wordings import Name, Text

RENAMINGS = (
    "[rename|rename] {old} to {new}",
    "[rename|rename] {old} to {new}",
    "rename {plain} [as|into|->|=>] {new}",
    "rename {old} to {new} [everywhere|throughout|in the whole file|in this file|wherever it is used]",
    "change the name of {old} to {new}",
    "change the name of {old} from {plain} to {new}",
    "[call|name] {old} {new} instead",
    "give {old} the name {new}",
    "={old} should be [called|named|renamed to] {new}",
    "={old} should be {new}",
    "={plain} [->|=>|to] {new}",
    "=rename: {plain} [->|=>] {new}",
    "={new} is a better name for {old}, [rename it|please rename it]",
    "use the name {new} instead of {plain} for {thing}",
)


def uses(source, name):
    """Counts the ways in which a file uses a name: (plain, attribute, keyword of a call, key in an import)."""
    plain = attribute = keyword = 0
    tokens, depth = source.tokens, 0
    for at, token in enumerate(tokens):
        if token.type == tokenize.OP:
            depth += (token.string in "([{") - (token.string in ")]}")
        if token.type != tokenize.NAME or token.string != name:
            continue
        if at and tokens[at - 1].string == ".":
            attribute += 1
        elif depth and at + 1 < len(tokens) and tokens[at + 1].string == "=" and tokens[at - 1].string in "(,":
            keyword += 1
        else:
            plain += 1
    return plain, attribute, keyword


F_STRING = re.compile("(?i)(?:f|rf|fr)['\"]")
IN_BRACES = re.compile(r"\{[^{}\n]*\}")


def with_name_in_braces(string, old, new, what=None):
    """Renames in the expressions of an f-string; returns None where there is nothing to rename."""
    before = {"method": r"(?<=\.)", None: r"(?<![\w'\"])"}.get(what, r"(?<![\w.'\"])")
    word = re.compile(rf"{before}{re.escape(old)}(?![\w'\"])")
    text = IN_BRACES.sub(lambda braces: word.sub(new, braces[0]), string)
    return text if text != string else None


def names_in_braces_are_clear(source, name):
    """Whether each string with the name inside of braces is an f-string of one line without braces in braces."""
    inside = re.compile(rf"\{{[^\n]*\b{re.escape(name)}\b")
    return all(
        F_STRING.match(t.string)
        and t.start[0] == t.end[0]
        and not re.search(r"\{\{|\}\}|\{[^{}]*\{", t.string)
        for t in source.tokens
        if t.type == tokenize.STRING and inside.search(t.string)
    )


def with_name(source, old, new, what=None):
    """Renames the tokens that can mean a thing: `x.name` for methods and attributes, plain names for all else."""
    tokens = source.tokens
    dotted = {t.start for before, t in zip(tokens, tokens[1:]) if before.string == "." and t.string == old}
    defined = {t.start for before, t in zip(tokens, tokens[1:]) if before.string == "def" and t.string == old}

    def renamed(token):
        if token.type == tokenize.STRING and F_STRING.match(token.string):
            return with_name_in_braces(token.string, old, new, what)
        if token.type != tokenize.NAME or token.string != old:
            return None
        at = token.start
        mine = what is None or (at in dotted or at in defined if what == "method" else at not in dotted)
        return new if mine else None

    text, count = source.replace_tokens(renamed)
    require(0 < count <= 40)
    return text


def one_meaning(source, what, name):
    """Whether the uses of a name that `with_name` would change can be one thing."""
    plain, attribute, keyword = uses(source, name)
    imported = {(a.asname or a.name).split(".")[0] for n in source.nodes(ast.Import, ast.ImportFrom) for a in n.names}
    functions = [(f.name, owner) for f, _, owner in source.functions() if f.name == name]
    if name in imported or keyword or not names_in_braces_are_clear(source, name):
        return False
    if what == "method":
        owners = [
            before.string
            for before, _, t in zip(source.tokens, source.tokens[1:], source.tokens[2:])
            if t.string == name
        ]
        return plain == len(functions) and not imported & set(owners)
    return all(owner is None for _, owner in functions)


def with_name_in_function(source, function, old, new, what):
    """Renames a parameter or a variable of one function; other functions may use the name."""
    begin, end, indent = function.lineno, function.end_lineno, function.col_offset
    strings = [n.value for n in ast.walk(function) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    require(not any("\n" in string for string in strings))
    inside = Source("\n".join(line[indent:] for line in source.lines[begin - 1 : end]))
    require(one_meaning(inside, what, old))
    lines = with_name(inside, old, new, what).split("\n")
    return source.with_lines(begin - 1, [" " * indent + line if line else line for line in lines], end)


def renaming(ask, source, what):
    """Returns (old, new, new text)."""
    functions = source.functions()
    if what in ("function", "method"):
        found = [
            f.name for f, _, owner in functions if not f.name.startswith("__") and bool(owner) == (what == "method")
        ]
    elif what == "class":
        found = [n.name for n in source.nodes(ast.ClassDef)]
    elif what == "parameter":
        found = [a.arg for f, _, _ in functions for a in f.args.args + f.args.kwonlyargs]
    else:
        found = [n.id for n in source.nodes(ast.Name) if isinstance(n.ctx, ast.Store)]
        found = [name for name in found if name.isupper() == (what == "constant")]
    found = sorted({name for name in found if name not in RESERVED and len(name) > 1})
    old = ask.choice(found)
    require(one_meaning(source, what, old))
    new = new_name(ask.random, old, source.names(), ask.name_pool)
    return old, new, with_name(source, old, new, what)


def draw_what(random):
    return random.choice(
        ["function"] * 3 + ["method", "class", "class", "variable", "variable", "variable"] + ["parameter", "constant"]
    )


@kind(18)
def rename(ask):
    what = draw_what(ask.random)
    old, new, text = renaming(ask, ask.source, what)
    plain, attribute, _ = uses(ask.source, old)
    slots = dict(plain=Name(old), new=Name(new), thing=f"the {what}")
    if what != "method" and attribute or what == "method" and plain > 1:  # the name alone would not tell which
        marked = ask.name(old)
        slots["old"] = ask.choice(
            [f"the {what} {marked}", f"the {what} {marked}", f"the {marked} {what}", f"{what} {marked}"]
        )
        return ask.say(*[form for form in RENAMINGS if "{plain}" not in form], **slots), text
    return ask.say(*RENAMINGS, old=ask.thing(what, old), **slots), text


@kind(1.3)
def rename_every_use(ask):
    """Takes every token of that name, whatever it means."""
    old = ask.choice(
        sorted(n for n in ask.source.names() if n not in RESERVED and len(n) > 2 and ask.source.count_of(n) > 1)
    )
    require(not any(old in (a.name, a.asname) for n in ask.source.nodes(ast.Import, ast.ImportFrom) for a in n.names))
    require(names_in_braces_are_clear(ask.source, old))
    new = new_name(ask.random, old, ask.source.names(), ask.name_pool)
    return ask.say(
        "replace [every|each] [use|occurrence] of [the name|the identifier] {old} with {new}",
        "[rename|change] all [uses|occurrences] of [the name|the identifier] {old} to {new}",
        "rename the identifier {old} to {new} [everywhere|throughout], [also where it is an attribute|attributes and keywords too]",
        "=[every|each] identifier {old} [should become|becomes] {new}",
        old=Name(old),
        new=Name(new),
    ), with_name(ask.source, old, new)


@kind(21)
def rename_several(ask):
    pairs, source = [], ask.source
    for _ in range(ask.random.choice([2, 2, 3, 4])):
        what = ask.random.choice(["variable", "function", "parameter", "method"])
        old, new, text = renaming(ask, source, what)
        require(what == "method" or uses(source, old)[1] == 0)
        require(old not in [n for _, n in pairs])
        pairs.append((old, new))
        source = Source(text)
    arrow = ask.random.choice([" to ", " to ", " -> ", " => ", " as "])
    said = [ask.name(old) + arrow + ask.name(new) for old, new in pairs]
    joined = ", ".join(said[:-1]) + ask.random.choice([" and ", " and ", ", ", ", and "]) + said[-1]
    return (
        ask.say(
            "rename {all}",
            "rename {all}",
            "[rename these names|make these renames|rename the following|change these names]: {all}",
            "[change the names|change the name of] {all}",
            "=[renames|names|new names|renaming]: {all}",
            "[please rename|rename] the [names|identifiers] {all}",
            "[change|rename] {all} [everywhere|throughout|in this file]",
            "do [these|the following] [renames|renamings]: {all}",
            all=joined,
        ),
        source.text,
    )


@kind(5.8)
def rename_parameter(ask):
    """Renames a parameter in its function only; other functions may use the name."""
    function, _, f = ask.drawn_function()
    arguments = function.args.args + function.args.kwonlyargs
    old = ask.choice([a.arg for a in arguments if a.arg not in RESERVED and len(a.arg) > 1])
    new = new_name(ask.random, old, ask.source.names(), ask.name_pool)
    require(not re.search(rf"\b{re.escape(function.name)}\([^\n]*\b{re.escape(old)}=", ask.source.text))
    text = with_name_in_function(ask.source, function, old, new, "parameter")
    return ask.say(
        "rename the [parameter|argument|param] {old} of {f} to {new}",
        "rename the [parameter|argument] {old} [to|into] {new} in {f}",
        "in {f}, rename [the parameter|the argument|the arg] {old} to {new}",
        "in {f}, [call|name] the [parameter|argument] {old} {new}",
        "rename {f}'s [parameter|argument] {old} to {new}",
        "change the [parameter|argument] name {old} to {new} in {f}",
        "=the [parameter|argument] {old} of {f} should be [called|named] {new}",
        f=f,
        old=Name(old),
        new=Name(new),
    ), text


def an_attribute(ask):
    """Returns an attribute that methods set, which is no function's name."""
    source = ask.source
    found = {n.attr for n in source.nodes(ast.Attribute) if isinstance(n.value, ast.Name) and n.value.id == "self"}
    stored = {n.attr for n in source.nodes(ast.Attribute) if isinstance(n.ctx, ast.Store)}
    return ask.choice(sorted(found & stored - {f.name for f, _, _ in source.functions()}))


def with_attribute(source, old, new):
    """Renames an attribute of self where no other object can have it."""
    require(not re.search(rf"\{{[^{{}}\n]*\.{re.escape(old)}\b", source.text))
    objects = [n.value for n in source.nodes(ast.Attribute) if n.attr == old]
    require(all(not isinstance(x, ast.Name) or x.id == "self" for x in objects))
    tokens = source.tokens
    places = {t.start for before, t in zip(tokens, tokens[1:]) if before.string == "." and t.string == old}
    text, count = source.replace_tokens(lambda t: new if t.start in places and t.string == old else None)
    require(0 < count <= 30)
    return text


@kind(9.8)
def rename_attribute(ask):
    old = an_attribute(ask)
    new = new_name(ask.random, old, ask.source.names(), ask.name_pool)
    text = with_attribute(ask.source, old, new)
    dotted = Name("self." + old)
    return (
        ask.say(
            "rename [the attribute|the field|attribute|the instance variable|the member] {old} to {new}",
            "rename {self_old} to {self_new}",
            "[change|rename] {self_old} to {self_new} [everywhere|throughout|in the class|in all methods]",
            "replace {self_old} with {self_new}",
            "use {self_new} instead of {self_old}",
            "={self_old} [->|=>] {self_new}",
            "={self_old} should be [called|named|] {self_new}",
            "change the name of the [attribute|field] {old} to {new}",
            old=Name(old),
            new=Name(new),
            self_old=dotted,
            self_new=Name("self." + new),
        ),
        text,
    )


@kind(4.9)
def rename_key(ask):
    """Renames a string that is a key of dictionaries, wherever it stands as a whole string."""
    source = ask.source
    keys = [k for n in source.nodes(ast.Dict) for k in n.keys] + [n.slice for n in source.nodes(ast.Subscript)]
    keys = [
        k
        for k in keys
        if isinstance(k, ast.Constant) and isinstance(k.value, str) and re.fullmatch(r"[\w-]{2,20}", k.value)
    ]
    old = ask.choice(sorted({k.value for k in keys}))
    same = [n for n in source.nodes(ast.Constant) if n.value == old]
    require(len(same) < 8 and not re.search(r"\bf[\"'][^\n]*" + re.escape(old), source.text))
    new = "_".join(ask.random.sample(NOUNS, ask.random.choice([1, 1, 2])))
    require(new != old and source.count_of(new) == 0)
    pairs = []
    for node in same:
        quoted = source.text_of(node)
        require(quoted[1:-1] == old)
        pairs.append((node, quoted[0] + new + quoted[0]))
    return ask.say(
        "rename the [key|dict key|dictionary key] {old} to {new}",
        "rename the key {old} to {new} [everywhere|throughout]",
        "change the [key|dictionary key] {old} to {new}",
        "use the key {new} instead of {old}",
        "use [key|the key] {new} in place of {old}",
        "=the [key|dictionary key] {old} should be [called|named|] {new}",
        "=key {old} [->|=>] {new}",
        "replace the key {old} [with|by] {new}",
        old=Text(old) if ask.chance(0.6) else Name(old),
        new=Text(new) if ask.chance(0.6) else Name(new),
    ), source.with_replaced(pairs)
