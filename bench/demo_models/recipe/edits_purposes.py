"""Kinds of edits that people word by what a value or a name is for: they leave out the old code, the place, or both."""
import ast
import re
import tokenize

from edit_request import kind
from edits_names import one_meaning, with_name
from edits_values import PLAIN_STRING, new_number, other_string
from python_source import RESERVED, docstring_node, require, within
from vocabulary import NOUNS, new_name
from wordings import Name, Text

LEVELS = "debug info warning error critical".split()
SIBLINGS = (  # names that people exchange for one another, from the same module
    "Lock RLock|time perf_counter monotonic process_time|md5 sha256 sha1 sha512|choice choices sample|randint randrange|"
    "OrderedDict defaultdict Counter|dumps dump|loads load|floor ceil|join abspath|listdir scandir|sleep wait|getLogger "
    "get_logger|run check_output call check_call|assertEqual assertEquals|assertTrue assertFalse|match search fullmatch|"
    "deepcopy copy|cache lru_cache|Thread Process|exists isfile isdir|strip lstrip rstrip|append extend|get post put|"
    "utcnow now today|getenv environ|lower casefold|namedtuple NamedTuple|warn warning|readline readlines|items values keys"
)
SIBLINGS_OF = {name: group.split() for group in SIBLINGS.split("|") for name in group.split()}
DECIMALS = re.compile(r"(?<=[:%]\.)\d(?=f\b)")  # how many, in a format


@kind(30)
def log_level(ask):
    """Logs at another level: the only call of that level in the file or in a function."""
    source = ask.source
    calls = [
        n
        for n in source.nodes(ast.Call)
        if isinstance(n.func, ast.Attribute) and n.func.attr in LEVELS and ast.unparse(n.func.value) in (
            "logger",
            "logging",
            "log",
            "self.logger",
        )
    ]
    node = ask.choice(calls)
    old, same = node.func.attr, [n for n in calls if n.func.attr == node.func.attr]
    new, place = ask.choice([level for level in LEVELS if level != old]), ""
    if len(same) > 1:
        function, f = ask.function_around(node)
        require(len(within(function, same)) == 1)
        place = " in " + f
    full = source.text_of(node.func)
    return ask.say(
        "log at {new} level{place}, not {old}",
        "log at [level {new}|the {new} level|{new} level] [instead of {old}|rather than {old}]{place}",
        "log {a_new} {new} instead of {a_old} {old}{place}",
        "log {a_new} {new} [instead of|rather than|not] {a_old} {old}{place}",
        "[use|call] {x}.{new} instead of {x}.{old}{place}",
        "=the [log level|level]{place} should be {new} [instead of {old}|not {old}|]",
        "=this should be logged [as|at] {new} [instead of {old}|not {old}]{place}",
        "[lower|change|set] the log level{place} [from {old} to|to] {new}" if LEVELS.index(
            new
        ) < LEVELS.index(old) else "[raise|change|set] the log level{place} [from {old} to|to] {new}",
        "[change|turn] the {old}{place} [to|into] {a_new} {new}",
        new=new,
        old=old,
        a_new="an" if new[0] in "ie" else "a",
        a_old="an" if old[0] in "ie" else "a",
        x=full.rsplit(".", 1)[0],
        place=place,
    ), source.with_replaced([(node.func, full.rsplit(".", 1)[0] + "." + new)])


@kind(12)
def use_sibling(ask):
    """Uses another name of the same module or object: sha256 for md5, RLock for Lock. Its import changes too."""
    source = ask.source
    present = sorted({t.string for t in source.tokens if t.type == tokenize.NAME and t.string in SIBLINGS_OF})
    defined = {f.name for f, _, _ in source.functions()}
    defined |= {n.id for n in source.nodes(ast.Name) if isinstance(n.ctx, ast.Store)}
    old = ask.choice([name for name in present if name not in defined])
    new = ask.choice([name for name in SIBLINGS_OF[old] if name not in source.names()])
    tokens = [t for t in source.tokens if t.type == tokenize.NAME and t.string == old]
    require(len(tokens) <= 6 and source.count_of(old) == len(tokens))
    text, _ = source.replace_tokens(lambda t: new if t.type == tokenize.NAME and t.string == old else None)
    many = len(tokens) > 1
    return ask.say(
        "use {new} instead of {old}",
        "use {new} instead of {old}",
        "use {new}, not {old}",
        "use {new} rather than {old}" + (" [everywhere|]" if many else ""),
        "[switch|change] from {old} to {new}",
        "replace {old} [with|by] {new}" + (" [everywhere|]" if many else ""),
        "=it should [use|be] {new} [instead of|not] {old}",
        "={old} [->|=>] {new}",
        "={old} is [deprecated|unsafe|old|slow|wrong here|not what we want|outdated], use {new} [instead|]",
        "={new} instead of {old} [please|]",
        "=we should [use|call|take] {new} [here|], not {old}",
        old=Name(old),
        new=Name(new),
    ), text


@kind(14)
def number_of_function(ask):
    """Changes the only number of its value in a function, which the words name instead of the line."""
    source = ask.source
    numbers = [
        n
        for n in source.nodes(ast.Constant)
        if isinstance(n.value, (int, float)) and not isinstance(n.value, bool) and n.lineno == n.end_lineno
    ]
    node = ask.choice(numbers)
    function, f = ask.function_around(node)
    require(node.lineno > function.lineno)
    old = source.text_of(node)
    inside = within(function, numbers)
    require(re.fullmatch(r"\d{1,5}|\d+\.\d+", old) and sum(source.text_of(n) == old for n in inside) == 1)
    new = new_number(ask.random, old)
    returned = [n for n in source.nodes(ast.Return) if n.lineno == node.lineno]
    if returned and isinstance(returned[0].value, ast.Tuple) and ask.chance(0.8):
        new = ask.choice([c for c in ("200", "201", "204", "400", "401", "403", "404", "409", "500") if c != old])
    require(new != old)
    only = len(inside) == 1
    forms = [
        "[use|take] {new} instead of {old} in {f}",
        "in {f}, [use|take] {new} [instead of|not|rather than] {old}",
        "=in {f} it should be {new}, not {old}",
        "=in {f}: {new} [instead of|not] {old}",
        "=in {f}, {old} [->|=>|should be] {new}",
        "={f}: {new} [instead of|rather than|not] {old}",
        "change [the|] {old} in {f} to {new}",
        "replace [the|] {old} in {f} [with|by] {new}",
        "make it {new} [instead of|rather than|not] {old} in {f}",
        "={f} should use {new} [instead of|rather than|not] {old}",
    ]
    if returned:
        forms += [
            "={f} should [return|answer|give] {new} [instead of|rather than|not] {old}",
            "[return|answer|give] {new} instead of {old} in {f}",
            "make {f} [return|answer|give] {new} [instead of|rather than|not] {old}",
        ] * 2
        forms += [
            "={f} should [return|answer|respond with] {new}",
            "make {f} [return|answer] {new}",
        ] * (2 if only else 0)
    elif only:
        forms += [
            "change the number in {f} to {new}",
            "={f} should use {new}",
            "=in {f}, [use|take|make it] {new}",
        ]
    return ask.say(*forms, f=f, old=old, new=new), source.with_replaced([(node, new)])


@kind(16)
def keyword_of_call(ask):
    """Changes the value of the only keyword argument of that name in the file."""
    source = ask.source
    keywords = [k for n in source.nodes(ast.Call) for k in n.keywords if k.arg]
    names = [k.arg for k in keywords]
    found = [
        k
        for k in keywords
        if names.count(k.arg) == 1
        and isinstance(k.value, ast.Constant)
        and isinstance(k.value.value, (bool, int, float, str))
        and source.count_of(k.arg) == 1
    ]
    chosen = ask.choice(found)
    value, key = chosen.value.value, chosen.arg
    old, spoken = source.text_of(chosen.value), key.replace("_", " ")
    if isinstance(value, bool):
        new = str(not value)
        return ask.say(
            "[turn|switch] {spoken} {on}",
            "[turn|switch] {on} {spoken} [mode|]",
            "[turn|switch] {on} [the|] {spoken} [flag|option|]",
            "{able} {spoken} [mode|]",
            "set {key} to {new}",
            "={key} should be {new}",
            "={key}={new}",
            "=no {spoken} [please|]" if value else "=with {spoken}[, please|]",
            "=[it should|we should|should] [run|be called|work] {joined} {spoken}",
            "pass {key}={new} [instead of {old}|]",
            key=Name(key),
            spoken=spoken,
            on="off" if value else "on",
            able="disable" if value else "enable",
            joined="without" if value else "with",
            new=new,
            old=old,
        ), source.with_replaced([(chosen.value, new)])
    if isinstance(value, str):
        require(re.fullmatch(r"(['\"])[^'\"\\{}%\n`]{1,40}\1", old))
        said_new = other_string(ask.random, value)
        require(said_new != value)
        new = old[0] + said_new + old[0]
        shown, shown_old = Text(said_new), Text(value)
    else:
        require(re.fullmatch(r"[\d.]{1,7}", old))
        new = new_number(ask.random, old)
        require(new != old)
        shown, shown_old = new, old
    return ask.say(
        "[set|change] [the|] {spoken} to {new}",
        "[set|change] {key} to {new}",
        "=the {spoken} should be {new} [instead of {old}|not {old}|rather than {old}|]",
        "={key} should be {new} [instead of {old}|not {old}|]",
        "use [a|the] {spoken} of {new} [instead of {old}|]",
        "use {key}={whole}",
        "={spoken} {new} [instead of|not] {old}",
        "make the {spoken} {new}",
        "={key}: {old} [->|=>|to] {new}",
        "={spoken} [->|=>|=] {new}",
        "pass {key}={whole} [instead of {key}={old_whole}|]",
        key=Name(key),
        spoken=spoken,
        new=shown,
        old=shown_old,
        whole=new,
        old_whole=old,
    ), source.with_replaced([(chosen.value, new)])


@kind(10)
def string_of_function(ask):
    """Changes the only plain string in a function, or the only one that it prints, raises or returns."""
    source = ask.source
    strings = [
        n
        for n in source.nodes(ast.Constant)
        if isinstance(n.value, str) and n.lineno == n.end_lineno and PLAIN_STRING.fullmatch(
            source.text_of(n)
        ) and " " not in n.value[:1]
    ]
    node = ask.choice(strings)
    function, f = ask.function_around(node)
    require(
        node.lineno > function.lineno and not (
            docstring_node(function) and docstring_node(function).lineno == node.lineno
        )
    )
    line = source.lines[node.lineno - 1].strip()
    does, noun = (
        ("print", "message")
        if line.startswith("print(")
        else ("raise", "error")
        if line.startswith("raise ")
        else ("return", "text")
        if line.startswith("return ")
        else ("", "string")
    )
    inside = within(function, strings)
    same = [n for n in inside if does and source.lines[n.lineno - 1].strip().startswith(does)]
    require(len(inside) == 1 or (does and len(same) == 1))
    old, quoted = node.value, source.text_of(node)
    new = other_string(ask.random, old)
    require(new != old and quoted[0] not in new and "\\" not in new)
    forms = [
        f"[change|set] the [{noun}|{noun}|text] in {{f}} to {{new}}",
        f"=the {noun} in {{f}} should [be|say|read] {{new}}",
        f"in {{f}}, the {noun} should [be|say|read] {{new}} [instead of {{old}}|]",
        f"={{f}}'s {noun} should be {{new}}",
        f"use {{new}} as the {noun} in {{f}}",
    ]
    forms += {
        "print": [
            "={f} should [print|say|show] {new} [instead of {old}|]",
            "make {f} [print|say] {new}",
            "print {new} in {f} [instead of {old}|]",
            "[print|say] {new}, not {old}, in {f}",
        ],
        "raise": [
            "[change|set] the error [message|] in {f} to {new}",
            "={f} should [complain|fail] with {new}",
            "=the error [message|] of {f} should be {new}",
        ],
        "return": [
            "={f} should [return|say|answer|give] {new} [instead of {old}|]",
            "make {f} [return|say|answer] {new}",
            "return {new} [instead of {old}|] [in|from] {f}",
        ],
    }.get(does, [])
    return ask.say(
        *forms,
        f=f,
        new=Text(new),
        old=Text(old),
    ), source.with_replaced([(node, quoted[0] + new + quoted[0])])


@kind(9)
def part_of_string(ask):
    """Changes one word within a string; the words name just that one, or the constant that has the string."""
    source = ask.source
    strings = [
        n for n in source.nodes(
            ast.Constant
        ) if isinstance(n.value, str) and n.lineno == n.end_lineno and 4 < len(n.value) < 70 and "\\" not in n.value
    ]
    node = ask.choice(strings)
    require(docstring_node(source.tree) is None or docstring_node(source.tree).lineno != node.lineno)
    words = [w for w in re.findall(r"[A-Za-z0-9]+", node.value) if len(w) > 1 and w != node.value]
    old = ask.choice([w for w in words if source.text.count(w) == 1])
    new = new_number(ask.random, old) if old.isdigit() else ask.choice(NOUNS + [old + "s", "v2", "new", "test", "my"])
    if re.fullmatch(r"v\d", old):
        new = "v" + str(int(old[1:]) + 1)
    elif not old.isdigit():
        new = new.upper() if old.isupper() else new.capitalize() if old[:1].isupper() else new
    require(new != old and new not in source.text)
    owners = [
        n.targets[0].id
        for n in source.nodes(ast.Assign)
        if n.lineno == node.lineno and len(n.targets) == 1 and isinstance(n.targets[0], ast.Name)
    ]
    forms = [
        "change {old} to {new}",
        "replace {old} [with|by] {new}",
        "use {new} instead of {old}",
        "={old} should be {new}",
        "={old} [->|=>] {new}",
        "={new}, not {old}",
        "={new} [instead of|rather than] {old}",
    ]
    if owners:
        forms += [
            "={x} should [have|use|contain|point to] {new} [instead of|not] {old}",
            "in {x}, replace {old} with {new}",
            "[change|turn] {old} [to|into] {new} in {x}",
            "use {new} [instead of|not] {old} in {x}",
        ] * 2
    text = source.text_of(node)
    return ask.say(*forms, old=Text(old), new=Text(new), x=Name(owners[0] if owners else "x")), source.with_replaced(
        [(node, text.replace(old, new))]
    )


@kind(12)
def extra_item(ask):
    """Adds a string to the only list, tuple or set of strings that a function or the module has, in passing."""
    source = ask.source
    found = [
        n
        for n in source.nodes(ast.List, ast.Tuple, ast.Set)
        if len(n.elts) > 1 and n.lineno == n.end_lineno
        and all(isinstance(e, ast.Constant) and isinstance(e.value, str) for e in n.elts)
    ]
    node = ask.choice(found)
    last = source.text_of(node.elts[-1])
    require(re.fullmatch(r"(['\"])[^'\"\\\n`]{1,20}\1", last))
    value = node.elts[-1].value
    shaped = re.fullmatch(r"([.-]*)(\w+)", value)
    new = (shaped[1] if shaped else "") + ask.choice(NOUNS + ["csv", "zip", "svg", "json", "yaml", "log"])
    new = new.upper() if value.isupper() else new.capitalize() if value[:1].isupper() else new
    require(new not in [e.value for e in node.elts] and source.text.count(new) == 0)
    only = len(found) == 1
    forms = [
        "add {new} after {last}",
        "={new} should come after {last}",
        "put {new} after {last} in the list",
        "={new} as well as {last}",
        "not only {last} but also {new}",
    ]
    holders = [f for f, _, _ in source.functions() if f.lineno <= node.lineno <= f.end_lineno]
    if holders and len(within(holders[-1], found)) == 1:
        slots = {"f": ask.function_around(node)[1]}
        forms += [
            "={f} should [also|] [accept|allow|know|handle|take] {new} [too|as well|]",
            "in {f}, [also accept|also allow|add] {new}",
            "add {new} [in|to the list in] {f}",
        ] * 2
    else:
        slots = {}
    if only:
        forms += [
            "also [accept|allow|support|include|handle] {new}",
            "[accept|allow|support|include|handle] {new} [too|as well]",
            "={new} [too|as well]",
            "={new} is missing",
            "add {new} to the list",
        ]
    require(source.text.count(last) == 1)
    return ask.say(*forms, new=Text(new), last=Text(value), **slots), source.with_replaced(
        [(node.elts[-1], f"{last}, {last[0]}{new}{last[0]}")]
    )


@kind(14)
def several_defaults(ask):
    """Changes the default of a parameter that several functions have."""
    source, found = ask.source, {}
    for function, _, owner in source.functions():
        for argument, value in zip(function.args.args[::-1], function.args.defaults[::-1]):
            if isinstance(value, ast.Constant) and value.lineno == value.end_lineno:
                found.setdefault((argument.arg, source.text_of(value)), []).append((function, owner, value))
    key = ask.choice(sorted(k for k, uses in found.items() if 1 < len(uses) <= 4))
    (name, old), uses = key, found[key]
    require(all(source.is_only(function) for function, _, _ in uses))
    new = new_number(ask.random, old) if re.fullmatch(r"[\d.]+", old) else {
        "True": "False",
        "False": "True",
        "None": "0",
    }.get(old)
    require(new and new != old)
    names = [ask.name(function.name) for function, _, _ in uses]
    all_of = ", ".join(names[:-1]) + " and " + names[-1]
    return ask.say(
        "={fs} should default to {new} for {x}",
        "[change|set] the default of {x} to {new} in {fs}",
        "[change|set] the default [{plain}|of {x}] to {new} [everywhere|in all functions]",
        "=the default {plain} should be {new} everywhere",
        "make {x} default to {new} in [{fs}|all functions]",
        "={x} should default to {new} [everywhere|in {fs}|in all functions] [instead of {old}|]",
        fs=all_of,
        x=Name(name),
        plain=name.replace("_", " "),
        old=old,
        new=new,
    ), source.with_replaced([(value, new) for _, _, value in uses])


@kind(60)
def decimals(ask):
    """Changes how many decimals the only number that is printed with some has."""
    source = ask.source
    found = [(at, match) for at, line in enumerate(source.lines) for match in DECIMALS.finditer(line)]
    require(found)
    at, match = ask.choice(found)
    holders = [(f, o) for f, _, o in source.functions() if f.lineno <= at + 1 <= f.end_lineno]
    place = ""
    if len(found) > 1:
        require(holders and source.is_only(holders[-1][0]))
        function = holders[-1][0]
        require(sum(function.lineno <= row + 1 <= function.end_lineno for row, _ in found) == 1)
    if holders and source.is_only(holders[-1][0]) and (len(found) > 1 or ask.chance(0.5)):
        place = " in " + ask.function(*holders[-1])
    new = ask.choice([d for d in "01234" if d != match[0]])
    word = {"0": "no", "1": "one", "2": "two", "3": "three", "4": "four"}[new] if ask.chance(0.5) else new
    s = "" if new == "1" else "s"
    line = source.lines[at]
    return ask.say(
        "[show|print|use|display] {word} decimal{s}{place}",
        "={word} decimal{s}{place} [instead of {old}|not {old}|please|]",
        "round to {word} [decimal{s}|digit{s}]{place}",
        "format [it|the number|the value]{place} with {word} [decimal{s}|decimal place{s}|digit{s}]",
        "=the number{place} should have {word} decimal{s}",
        word=word,
        s=s,
        old=match[0],
        place=place,
    ), source.with_lines(at, [line[: match.start()] + new + line[match.end() :]], at + 1)


@kind(25)
def rename_not_other(ask):
    """Renames one of two functions with similar names; the words say that the other one stays."""
    source = ask.source
    names = sorted({f.name for f, _, owner in source.functions()})
    names = [name for name in names if len(name) > 3]
    pairs = [(a, b) for a in names for b in names if a != b and (a in b or b in a) and "__" not in a]
    old, other = ask.choice(pairs)
    what = "method" if any(o for f, _, o in source.functions() if f.name == old) else "function"
    require(one_meaning(source, what, old))
    new = new_name(ask.random, old, source.names(), ask.name_pool)
    return ask.say(
        "rename {old} to {new} (but not {other})",
        "rename {old} to {new}, [but not {other}|leave {other} alone|{other} stays|keep {other}|not {other}]",
        "rename {old} to {new} and leave {other} as it is",
        "rename {old} to {new} ([only that one|just this one|not {other}])",
        "={old} [->|=>] {new}, {other} stays",
        "={old} should be called {new}, {other} [stays|keeps its name]",
        "[call|name] {old} {new}, but [leave|keep] {other}",
        old=Name(old),
        new=Name(new),
        other=Name(other),
    ), with_name(source, old, new, what)


@kind(10)
def rename_loosely(ask):
    """Renames something with words that look less like a command."""
    source, found = ask.source, []
    for function, _, owner in source.functions():
        if not function.name.startswith("__"):
            found.append((function.name, "method" if owner else "function"))
    found += [(n.name, "class") for n in source.nodes(ast.ClassDef)]
    found += [
        (n.id, "constant" if n.id.isupper() else "variable")
        for n in source.nodes(ast.Name)
        if isinstance(n.ctx, ast.Store) and n.id not in RESERVED and len(n.id) > 1
    ]
    old, what = ask.choice(sorted(set(found)))
    require(one_meaning(source, what, old))
    new = new_name(ask.random, old, source.names(), ask.name_pool)
    return ask.say(
        "=s/{old}/{new}/",
        "={old} [isn't|is not] a good name, [call it {new}|{new} is better|use {new}]",
        "=[the name {old} is misleading|{old} is misleading|{old} is a bad name|{old} is confusing], [call it|make it|use] {new}",
        "=[I'd|I would] [call|name] {old} {new}",
        "={old} [should really be|is really] {new}[, please rename|]",
        "=the {what} {old} should [really|rather|] be called {new}",
        "={new} instead of {old} [as the name|]",
        "=[call|name] it {new} [instead of|not] {old}",
        "use {new} as the name of [the {what}|the {what}|] {old}",
        "={old} is now [called|named] {new}",
        "=can {old} be [called|named|renamed to] {new}",
        "please rename the {what} {old} to {new}, thanks",
        "rename {old} too {new}",
        "the {what} should be called {new}, not {old}",
        what=what,
        old=Name(old),
        new=Name(new),
    ), with_name(source, old, new, what)
