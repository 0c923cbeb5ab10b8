"""Kinds of edits that people word by what the code is for: they leave out the old code, the place, or both."""
import ast
import re
import tokenize

from edit_request import kind
from edits_code import f_string_of
from edits_names import one_meaning, with_name
from edits_removals import without_top_gap
from edits_values import PLAIN_STRING, new_number, other_string
from python_source import RESERVED, body_start, docstring_node, require
from vocabulary import NOUNS, TYPES, new_name
from wordings import Code, Name, Text

LEVELS = "debug info warning error critical".split()
SIBLINGS = (  # names that people exchange for one another, from the same module
    "Lock RLock|time perf_counter monotonic process_time|md5 sha256 sha1 sha512|choice choices sample|randint randrange|"
    "OrderedDict defaultdict Counter|dumps dump|loads load|floor ceil|join abspath|listdir scandir|sleep wait|getLogger "
    "get_logger|run check_output call check_call|assertEqual assertEquals|assertTrue assertFalse|match search fullmatch|"
    "deepcopy copy|cache lru_cache|Thread Process|exists isfile isdir|strip lstrip rstrip|append extend|get post put|"
    "utcnow now today|getenv environ|lower casefold|namedtuple NamedTuple|warn warning|readline readlines|items values keys"
)
SIBLINGS_OF = {name: group.split() for group in SIBLINGS.split("|") for name in group.split()}


def function_around(ask, node):
    """Returns the innermost function around a node and words for it; the function's name is the only one of the file."""
    holders = [(f, o) for f, _, o in ask.source.functions() if f.lineno <= node.lineno <= f.end_lineno]
    require(holders)
    function, owner = holders[-1]
    require(ask.source.is_only(function))
    return function, ask.function(function, owner) if ask.chance(0.4) else ask.name(function.name)


def within(function, nodes):
    return [n for n in nodes if function.lineno <= n.lineno <= function.end_lineno]


@kind(30)
def log_level(ask):
    """Logs at another level: the only call of that level in the file or in a function."""
    source = ask.source
    calls = [
        n
        for n in source.nodes(ast.Call)
        if isinstance(n.func, ast.Attribute) and n.func.attr in LEVELS and ast.unparse(n.func.value) in ("logger", "logging", "log", "self.logger")
    ]
    node = ask.choice(calls)
    old, same = node.func.attr, [n for n in calls if n.func.attr == node.func.attr]
    new, place = ask.choice([level for level in LEVELS if level != old]), ""
    if len(same) > 1:
        function, f = function_around(ask, node)
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
        "[lower|change|set] the log level{place} [from {old} to|to] {new}" if LEVELS.index(new) < LEVELS.index(old) else "[raise|change|set] the log level{place} [from {old} to|to] {new}",
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
    defined = {f.name for f, _, _ in source.functions()} | {n.id for n in source.nodes(ast.Name) if isinstance(n.ctx, ast.Store)}
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
    function, f = function_around(ask, node)
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
        forms += ["={f} should [return|answer|respond with] {new}", "make {f} [return|answer] {new}"] * (2 if only else 0)
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
            "=[it should|we should|should] [run|be called|work] [with|without] {spoken}".replace("[with|without]", "without" if value else "with"),
            "pass {key}={new} [instead of {old}|]",
            key=Name(key),
            spoken=spoken,
            on="off" if value else "on",
            able="disable" if value else "enable",
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


@kind(8)
def annotate_function(ask):
    """Gives all parameters of a function a type, and the function a return type."""
    source = ask.source
    function, _, f = ask.drawn_function()
    a = function.args
    free = [x for x in a.args if x.arg not in ("self", "cls")]
    require(not (a.vararg or a.kwarg or a.kwonlyargs or a.defaults or function.returns) and 0 < len(free) <= 4)
    require(all(x.annotation is None for x in free))
    head = re.match(r"(\s*(?:async )?def \w+\()([\w, ]*)(\):)$", source.lines[function.lineno - 1])
    require(head)
    drawn = TYPES + ["list[str]", "dict[str, int]", "str", "int", "str", "float"]
    types, returned = {x.arg: ask.choice(drawn) for x in free}, ask.choice(drawn)
    if len(free) > 1 and ask.chance(0.25):
        types = dict.fromkeys(types, ask.choice(drawn))
    put = [f"{x.arg}: {types[x.arg]}" if x.arg in types else x.arg for x in a.args]
    line = head[1] + ", ".join(put) + ")" + f" -> {returned}:"
    an = lambda name: ("an " if name[0] in "aeiou" else "a ") + name if name.isalpha() and name not in ("None",) else name  # noqa: E731
    article = ask.chance(0.5)
    each = [f"{ask.name(name)} is {an(type_) if article else type_}" for name, type_ in types.items()]
    same = set(types.values())
    if len(same) == 1 and len(types) > 1:
        each = [" and ".join([", ".join(map(ask.name, list(types)[:-1])), ask.name(list(types)[-1])]) + (" are " if ask.chance(0.7) else " are both " if len(types) == 2 else " are all ") + next(iter(same))]
    back = an(returned) if article and returned != "None" else returned
    short = "(" + ", ".join(types.values()) + ") -> " + returned
    return ask.say(
        "annotate {f}: {each}, [it returns|returns|the result is] {back}",
        "annotate {f}: {each}, and [it returns|returns|the result is] {back}",
        "[add|write] type hints [to|for] {f}: {each}, [it returns|returns|the result is] {back}",
        "add type hints to {f}: {each}, and it returns {back}",
        "[add|use] type hints [in|for] {f} [-|:] {short}",
        "[annotate|type] {f} as {short}",
        "=type hints for {f} [please|]: {each}, [returns|it returns] {back}",
        "=type hints for {f}: {short}",
        f=f,
        each=", ".join(each[:-1]) + (" and " if ask.chance(0.4) else ", ") * (len(each) > 1) + each[-1],
        back=back,
        short=short,
    ), source.with_lines(function.lineno - 1, [line], function.lineno)


@kind(14)
def make_static(ask):
    """Makes a method that does not use self a static method."""
    source = ask.source
    found = [
        (f, o)
        for f, _, o in source.functions()
        if o and not f.decorator_list and f.args.args and f.args.args[0].arg == "self" and not f.name.startswith("__")
        and not any(isinstance(n, ast.Name) and n.id == "self" for n in ast.walk(f))
    ]
    function, owner = ask.choice(found)
    require(source.is_only(function))
    head = re.match(r"(\s*)(def \w+\()self(?:, )?(.*)$", source.lines[function.lineno - 1])
    require(head)
    return ask.say(
        "make {f} [a static method|static|a staticmethod]",
        "turn {f} into a [static method|staticmethod]",
        "={f} [can|could|should] be [static|a static method|a staticmethod]",
        "={f} [doesn't|does not] use self, make it [static|a static method|a staticmethod]",
        "use @staticmethod for {f} [and drop self|]",
        f=ask.function(function, owner),
    ), source.with_lines(function.lineno - 1, [head[1] + "@staticmethod", head[1] + head[2] + head[3]], function.lineno)


@kind(50)
def use_sum(ask):
    """Turns a loop that only adds up into sum()."""
    source, found = ask.source, []
    for function, _, owner in source.functions():
        for first, loop, last in zip(function.body, function.body[1:], function.body[2:]):
            if not (isinstance(first, ast.Assign) and isinstance(loop, ast.For) and isinstance(last, ast.Return)):
                continue
            inner = loop.body[0] if len(loop.body) == 1 and not loop.orelse else None
            test = None
            if isinstance(inner, ast.If) and not inner.orelse and len(inner.body) == 1:
                test, inner = inner.test, inner.body[0]
            name = ast.unparse(first.targets[0])
            if isinstance(inner, ast.AugAssign) and isinstance(inner.op, ast.Add) and ast.unparse(inner.target) == name:
                if ast.unparse(first.value) == "0" and last.value is not None and ast.unparse(last.value) == name:
                    found.append((function, owner, first, loop, last, inner.value, test))
    function, owner, first, loop, last, value, test = ask.choice(found)
    lines = source.lines[first.lineno - 1 : last.end_lineno]
    require(not any("#" in line for line in lines) and source.is_only(function))
    line = f"return sum({source.text_of(value)} for {source.text_of(loop.target)} in {source.text_of(loop.iter)}"
    line += f" if {source.text_of(test)})" if test else ")"
    require(len(line) < 100)
    return ask.say(
        "use sum() in {f}",
        "use sum in {f} [instead of the loop|instead of a loop|]",
        "[replace|turn] the loop in {f} [with|by|into] [sum()|a sum|a call of sum]",
        "in {f}, use sum [with a generator expression|instead of the loop|instead of a loop]",
        "={f} [could|can|should] [use|be written with|be simplified with] sum()",
        "simplify {f} [with|using] sum[|()]",
        "=can {f} use sum()[| instead of the loop]",
        "shorten {f} to a single return with sum",
        f=ask.function(function, owner),
    ), source.with_lines(first.lineno - 1, [" " * first.col_offset + line], last.end_lineno)


@kind(40)
def use_any(ask):
    """Turns a loop that returns True where a condition holds, else False, into any()."""
    source, found = ask.source, []
    for function, _, owner in source.functions():
        for loop, last in zip(function.body, function.body[1:]):
            inner = loop.body[0] if isinstance(loop, ast.For) and len(loop.body) == 1 and not loop.orelse else None
            if isinstance(inner, ast.If) and not inner.orelse and len(inner.body) == 1:
                if ast.unparse(inner.body[0]) == "return True" and ast.unparse(last) == "return False":
                    found.append((function, owner, loop, inner.test, last))
    function, owner, loop, test, last = ask.choice(found)
    require(source.is_only(function))
    require(not any("#" in line for line in source.lines[loop.lineno - 1 : last.end_lineno]))
    line = f"return any({source.text_of(test)} for {source.text_of(loop.target)} in {source.text_of(loop.iter)})"
    require(len(line) < 100)
    return ask.say(
        "use any() in {f} [instead of the loop|]",
        "={f} [could|can|should] [use|be written with|be simplified with] any()",
        "[replace|turn] the loop in {f} [with|by|into] any()",
        "simplify {f} [with|using] any[|()]",
        "in {f}, use any [with a generator expression|instead of the loop]",
        "=can {f} use any()[| instead of the loop]",
        f=ask.function(function, owner),
    ), source.with_lines(loop.lineno - 1, [" " * loop.col_offset + line], last.end_lineno)


@kind(30)
def return_condition(ask):
    """Turns `if x: return True` and `return False` into `return x`, or into `return not x`."""
    source, found = ask.source, []
    for function, _, owner in source.functions():
        for at, branch in enumerate(function.body):
            if not (isinstance(branch, ast.If) and len(branch.body) == 1 and isinstance(branch.body[0], ast.Return)):
                continue
            rest = branch.orelse or function.body[at + 1 :]
            if len(rest) == 1 and isinstance(rest[0], ast.Return) and (not branch.orelse or at == len(function.body) - 1):
                values = [n.value and ast.unparse(n.value) for n in (branch.body[0], rest[0])]
                if sorted(map(str, values)) == ["False", "True"]:
                    found.append((function, owner, branch, rest[0], values[0] == "True"))
    function, owner, branch, last, straight = ask.choice(found)
    require(source.is_only(function))
    require(not any("#" in line for line in source.lines[branch.lineno - 1 : last.end_lineno]))
    test = source.text_of(branch.test)
    require(isinstance(branch.test, (ast.Compare, ast.Name, ast.Attribute, ast.Call)) and len(test) < 70)
    opposite = {"==": "!=", "!=": "==", "<": ">=", ">": "<=", "<=": ">", ">=": "<", " is ": " is not ", " in ": " not in "}
    if not straight:
        middle = re.fullmatch(r"([\w.\[\]\"'()]+) (==|!=|<=|>=|<|>|is|in) ([\w.\[\]\"'()-]+)", test)
        if middle:
            test = f"{middle[1]} {opposite.get(middle[2], opposite.get(f' {middle[2]} ', '')).strip()} {middle[3]}"
        else:
            require(isinstance(branch.test, (ast.Name, ast.Attribute, ast.Call)))
            test = "not " + test
    return ask.say(
        "simplify {f}",
        "simplify {f} to [one|a single] return [statement|]",
        "={f} [can|could|should] be [simplified|one line|a single return]",
        "return the condition directly in {f}",
        "={f} [can|could|should] [just|simply|] return the condition",
        "shorten {f} [to one return|to a single return|]",
        "get rid of the if in {f}",
        f=ask.function(function, owner),
    ), source.with_lines(branch.lineno - 1, [" " * branch.col_offset + "return " + test], last.end_lineno)


@kind(16)
def return_not_raise(ask):
    """Returns a value where a function raised its only exception."""
    source = ask.source
    node = ask.choice([n for n in source.nodes(ast.Raise) if n.exc is not None and n.lineno == n.end_lineno])
    function, f = function_around(ask, node)
    require(len(within(function, source.nodes(ast.Raise))) == 1)
    raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
    require(isinstance(raised, ast.Name))
    new = ask.choice(["None", "None", "None", "False", "0", "[]"])
    return ask.say(
        "make {f} return {new} instead of raising [an error|an exception|{e}|]",
        "={f} should return {new} [instead of raising|rather than raise|not raise] [an exception|{e}|an error|anything]",
        "return {new} instead of raising [an error|{e}|an exception] in {f}",
        "=in {f}, return {new} instead of raising",
        "=[don't|do not] raise in {f}, return {new}",
        "={f} [shouldn't|should not] raise, return {new} instead",
        f=f,
        new=new,
        e=Name(raised.id),
    ), source.with_replaced([(node, "return " + new)])


@kind(25)
def rename_not_other(ask):
    """Renames one of two functions with similar names; the words say that the other one stays."""
    source = ask.source
    names = sorted({f.name for f, _, owner in source.functions()})
    pairs = [(a, b) for a in names for b in names if a != b and (a in b or b in a) and len(a) > 3 and len(b) > 3 and "__" not in a]
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


@kind(9)
def unused_import(ask):
    """Removes the import of a name that nothing uses, in words that give the reason."""
    source = ask.source
    nodes = [n for n in source.tree.body if isinstance(n, (ast.Import, ast.ImportFrom)) and n.lineno == n.end_lineno]
    used = [t.string for t in source.tokens if t.type == tokenize.NAME]
    found = [(n, a) for n in nodes for a in n.names if used.count((a.asname or a.name).split(".")[0]) == 1 and a.asname is None and "." not in a.name]
    node, alias = ask.choice(found)
    line = source.lines[node.lineno - 1]
    require("#" not in line and ";" not in line and "(" not in line and source.count_of(alias.name) == 1)
    lines = list(source.lines)
    left = [a for a in node.names if a is not alias]
    if left:
        head = f"from {'.' * node.level}{node.module or ''} import " if isinstance(node, ast.ImportFrom) else "import "
        require(line.startswith(head))
        lines[node.lineno - 1] = head + ", ".join(f"{a.name} as {a.asname}" if a.asname else a.name for a in left)
    else:
        del lines[node.lineno - 1]
    forms = [
        "={x} [isn't|isnt|is not] used [anywhere|any more|], [remove it|delete the import|remove the import|drop it]",
        "={x} is [never|not] used, [get rid of it|remove it|delete the import|drop it]",
        "={x} is imported but [not used|never used|not needed|unused]",
        "=we [don't|do not] use {x}, [remove it|drop the import]",
        "=the import of {x} [isn't|is not] needed[, remove it|]",
        "=no need to import {x}",
        "=[don't|do not] import {x}, [it's not used|it is unused|nothing uses it]",
    ]
    if len(found) == 1:
        forms += [
            "=[I think|] there's an import [we don't|that we don't|nobody|that we never] [use|need], [please remove it|remove it|can you remove it]",
            "remove the [unused|unnecessary|superfluous] import",
            "=one [of the imports|import] [isn't|is not] used, [remove it|please remove it]",
            "clean up the imports",
        ]
    return ask.say(*forms, x=Name(alias.name)), without_top_gap(lines)


@kind(6)
def first_comment(ask):
    """Removes a comment that its place or some of its words tell."""
    source = ask.source
    rows = [at for at, line in enumerate(source.lines) if line.strip().startswith("#") and not line.startswith("#!")]
    at = ask.choice(rows)
    neighbors = [source.lines[i].strip().startswith("#") for i in (at - 1, at + 1) if 0 <= i < len(source.lines)]
    require(not any(neighbors))
    words = re.findall(r"[a-zA-Z]{3,}", source.lines[at])
    forms, some = [], None
    if len(words) >= 3:
        count = ask.random.randint(2, min(4, len(words)))
        begin = ask.random.randrange(len(words) - count + 1)
        some = " ".join(words[begin : begin + count]).lower()
        if sum(some in " ".join(re.findall(r"[a-zA-Z]{3,}", line)).lower() for line in source.lines) == 1:
            forms += [
                "[remove|delete|drop|kick out] the comment about {some}",
                "[remove|delete|drop] the [{some} comment|comment on {some}|comment that says {some}]",
                "=the comment about {some} [can go|is wrong, remove it|is outdated, delete it|isn't needed]",
            ]
    if at == rows[0] and at < 3:
        forms += ["[remove|delete|drop] the comment at the [top|beginning|start] [of the file|]"] * 2
    if len(rows) == 1 and source.text.count("#") == 1:
        forms += ["[remove|delete|drop] the comment", "=no comments please", "=the comment [can go|isn't needed]"]
    require(forms)
    return ask.say(*forms, some=some or ""), without_top_gap(source.lines[:at] + source.lines[at + 1 :])


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
    forms = ["add {new} after {last}", "={new} should come after {last}", "put {new} after {last} in the list", "={new} as well as {last}", "not only {last} but also {new}"]
    holders = [f for f, _, _ in source.functions() if f.lineno <= node.lineno <= f.end_lineno]
    if holders and len(within(holders[-1], found)) == 1:
        slots = {"f": function_around(ask, node)[1]}
        forms += ["={f} should [also|] [accept|allow|know|handle|take] {new} [too|as well|]", "in {f}, [also accept|also allow|add] {new}", "add {new} [in|to the list in] {f}"] * 2
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
    return ask.say(*forms, new=Text(new), last=Text(value), **slots), source.with_replaced([(node.elts[-1], f"{last}, {last[0]}{new}{last[0]}")])


@kind(60)
def with_block(ask):
    """Opens a file in a with block where the statement that opens it is followed by a single use and a close."""
    source, found = ask.source, []
    for node in source.nodes(ast.AST):
        body = getattr(node, "body", None)
        for at, first in enumerate(body) if isinstance(body, list) else []:
            if isinstance(first, ast.Assign) and isinstance(first.value, ast.Call) and ast.unparse(first.value.func) == "open" and isinstance(first.targets[0], ast.Name):
                name = first.targets[0].id
                ends = [i for i in range(at + 1, len(body)) if ast.unparse(body[i]) == f"{name}.close()"]
                if ends and ends[0] > at + 1:
                    found.append((name, first, body[ends[0]], body[at + 1 : ends[0]]))
    name, first, last, between = ask.choice(found)
    require(first.lineno == first.end_lineno and not any('"""' in line for line in source.lines[first.lineno : last.lineno]))
    put = [f"{' ' * first.col_offset}with {source.text_of(first.value)} as {name}:"]
    put += ["    " + line if line.strip() else line for line in source.lines[first.lineno : last.lineno - 1]]
    return ask.say(
        "open [the file|{x}] in a with block",
        "use [with|a with statement|a with block] to open [the file|{x}]",
        "use a with [statement|block] [for|instead of closing] {x}",
        "={x} should be opened [in a with block|with a with statement]",
        "open the file with a with statement, then [close isn't needed|the close can go]",
        x=Name(name),
    ), source.with_lines(first.lineno - 1, put, last.end_lineno)


@kind(10)
def string_of_function(ask):
    """Changes the only plain string in a function, or the only one that it prints, raises or returns."""
    source = ask.source
    strings = [
        n
        for n in source.nodes(ast.Constant)
        if isinstance(n.value, str) and n.lineno == n.end_lineno and PLAIN_STRING.fullmatch(source.text_of(n)) and " " not in n.value[:1]
    ]
    node = ask.choice(strings)
    function, f = function_around(ask, node)
    require(node.lineno > function.lineno and not (docstring_node(function) and docstring_node(function).lineno == node.lineno))
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
        "print": ["={f} should [print|say|show] {new} [instead of {old}|]", "make {f} [print|say] {new}", "print {new} in {f} [instead of {old}|]", "[print|say] {new}, not {old}, in {f}"],
        "raise": ["[change|set] the error [message|] in {f} to {new}", "={f} should [complain|fail] with {new}", "=the error [message|] of {f} should be {new}"],
        "return": ["={f} should [return|say|answer|give] {new} [instead of {old}|]", "make {f} [return|say|answer] {new}", "return {new} [instead of {old}|] [in|from] {f}"],
    }.get(does, [])
    return ask.say(*forms, f=f, new=Text(new), old=Text(old)), source.with_replaced([(node, quoted[0] + new + quoted[0])])


@kind(9)
def part_of_string(ask):
    """Changes one word within a string; the words name just that one, or the constant that has the string."""
    source = ask.source
    strings = [
        n for n in source.nodes(ast.Constant) if isinstance(n.value, str) and n.lineno == n.end_lineno and 4 < len(n.value) < 70 and "\\" not in n.value
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
    forms = ["change {old} to {new}", "replace {old} [with|by] {new}", "use {new} instead of {old}", "={old} should be {new}", "={old} [->|=>] {new}", "={new}, not {old}", "={new} [instead of|rather than] {old}"]
    if owners:
        forms += ["={x} should [have|use|contain|point to] {new} [instead of|not] {old}", "in {x}, [change|replace] {old} [with|by] {new}".replace("[change|replace] {old} [with|by]", "replace {old} with"), "[change|turn] {old} [to|into] {new} in {x}", "use {new} [instead of|not] {old} in {x}"] * 2
    text = source.text_of(node)
    return ask.say(*forms, old=Text(old), new=Text(new), x=Name(owners[0] if owners else "x")), source.with_replaced(
        [(node, text.replace(old, new))]
    )


@kind(40)
def bare_except(ask):
    """Gives the only `except:` of the file, or of a function, an exception."""
    source = ask.source
    found = [n for n in source.nodes(ast.ExceptHandler) if n.type is None and source.lines[n.lineno - 1].strip() == "except:"]
    node, place = ask.choice(found), ""
    if len(found) > 1:
        function, f = function_around(ask, node)
        require(len(within(function, found)) == 1)
        place = " in " + f
    new = ask.choice(["ValueError", "Exception", "KeyError", "OSError", "TypeError", "ValueError", "IndexError"])
    line = source.lines[node.lineno - 1]
    return ask.say(
        "catch {new} instead of a bare except{place}",
        "catch [only|just|] {new}{place}",
        "[don't use|avoid] the bare except{place}, catch {new}".replace("[don't use|avoid]", "avoid"),
        "replace the bare except{place} [with|by] except {new}",
        "=the except{place} should [only|] catch {new}",
        "=no bare except{place}, [catch|use] {new}",
        "except {new}, not everything{place}",
        new=Name(new),
        place=place,
    ), source.with_lines(node.lineno - 1, [line.replace("except:", f"except {new}:")], node.lineno)


@kind(14)
def guard_in_words(ask):
    """Adds a check to a function whose condition is said in words."""
    source = ask.source
    function, _, f = ask.drawn_function()
    argument = ask.choice([a.arg for a in function.args.args if a.arg not in ("self", "cls")])
    number = str(ask.random.choice([0, 1, 2, 5, 10, 100]))
    test, words = ask.choice(
        [
            (f"{argument} < {number}", "[is less than|is smaller than|is below|is under] {n}"),
            (f"{argument} > {number}", "[is greater than|is larger than|is more than|is above|is over] {n}"),
            (f"{argument} <= {number}", "[is at most|is not more than|is not greater than] {n}"),
            (f"{argument} <= 0", "[is not positive|isn't positive]"),
            (f"{argument} < 0", "is negative"),
            (f"{argument} is None", "is None"),
            (f"not {argument}", "[is empty|is missing|is not given|isn't given]"),
            (f"{argument} == {number}", "is {n}"),
        ]
    )
    from_, indent = body_start(function, source)
    raises = ask.chance(0.6)
    quote, error = source.quote(), ask.choice(["ValueError", "ValueError", "TypeError", "KeyError", "RuntimeError"])
    message = ask.choice([f"{argument} must be positive", f"invalid {argument}", f"bad {argument}", f"no {argument}", f"{argument} is wrong", "invalid"])
    value = ask.choice(["None", "False", "0", "[]", "True", "-1"])
    does = f"raise {error}({quote}{message}{quote})" if raises else f"return {value}"
    forms = (
        [
            "raise {a} {error} with the message {message} in {f} [if|when] {x} {words}",
            "raise {a} {error} {message} [if|when] {x} {words} in {f}",
            "={f} should raise {a} {error} with the message {message} [if|when] {x} {words}",
            "={f} should raise {code} [if|when] {x} {words}",
            "in {f}, raise {code} [if|when] {x} {words}",
            "=if {x} {words}, {f} should raise {code}",
            "={f} must [fail|raise] with {code} [if|when] {x} {words}",
            "check in {f} that {x} is [ok|right|valid]: if it {words}, raise {code}",
        ]
        if raises
        else [
            "={f} should return {value} [if|when] {x} {words}",
            "make {f} return {value} [if|when] {x} {words}",
            "return {value} from {f} [if|when] {x} {words}",
            "=if {x} {words}, {f} should [just|] return {value}",
            "in {f}, return {value} [if|when] {x} {words}",
        ]
    )
    said_words = ask.choice([words])
    said = ask.say(
        *[form.replace("{words}", said_words) for form in forms],
        f=f,
        x=Name(argument),
        n=number,
        a="an" if error[0] in "AEIO" else "a",
        error=Name(error),
        message=Text(message),
        code=Code(f"{error}({quote}{message}{quote})"),
        value=value,
    )
    pad = " " * indent
    return said, source.with_lines(from_, [pad + f"if {test}:", pad + "    " + does])


@kind(26)
def f_strings_everywhere(ask):
    """Turns all formatted strings of a file, or of a function with several, into f-strings."""
    source = ask.source
    nodes = [n for n in source.nodes(ast.BinOp, ast.Call) if n.lineno == n.end_lineno]
    inner = {id(n.left) for n in nodes if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Add)}
    pairs = []
    for n in nodes:
        is_sum = isinstance(n, ast.BinOp) and isinstance(n.op, (ast.Mod, ast.Add))
        is_format = isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr == "format"
        has_text = any(isinstance(c, ast.Constant) and isinstance(c.value, str) for c in ast.walk(n))
        if id(n) in inner or not (is_sum or is_format) or not has_text:
            continue
        new = f_string_of(source, n)  # not applicable where one of them cannot be one
        require(new)
        pairs.append((n, new))
    place = ""
    if len(pairs) > 1 and ask.chance(0.5):
        function, f = function_around(ask, ask.choice(pairs)[0])
        pairs, place = [pair for pair in pairs if function.lineno <= pair[0].lineno <= function.end_lineno], " in " + f
    require(0 < len(pairs) <= 8)
    return ask.say(
        "use f-strings{place}" if place else "use f-strings [everywhere|throughout|in this file|]",
        "=f-strings{place}, please" if place else "=f-strings [everywhere|] please",
        "[convert|change|turn] [all|the] [strings|formatted strings|string formatting]{place} [to|into] f-strings",
        "use fstrings [instead of formatting|]{place}" if place else "use fstrings everywhere",
        "=all [strings|messages]{place} should be f-strings",
        "replace the string [formatting|concatenation]{place} [with|by] f-strings",
        place=place,
    ), source.with_replaced(pairs)


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
    new = new_number(ask.random, old) if re.fullmatch(r"[\d.]+", old) else {"True": "False", "False": "True", "None": "0"}.get(old)
    require(new and new != old)
    names = [ask.name(function.name) for function, _, _ in uses]
    all_of = ", ".join(names[:-1]) + " and " + names[-1]
    return ask.say(
        "={fs} should default to {new} [for {x}|as {x}|]" if len({k[0] for k in found}) == 1 else "={fs} should default to {new} for {x}",
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
    found = [(at, m) for at, line in enumerate(source.lines) for m in re.finditer(r"(?<=[:%]\.)\d(?=f\b)|(?<=[:%]\.)\d(?=f[}\"' )])", line)]
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
