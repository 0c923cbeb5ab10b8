"""Kinds of edits that make code simpler or safer, in the words that people have for it."""
import ast
import re
import tokenize

from edit_request import kind
from edits_code import f_string_of
from edits_removals import without_top_gap
from python_source import body_start, require, within
from vocabulary import TYPES
from wordings import Code, Name, Text


def _an(type_):
    return ("an " if type_[0] in "aeiou" else "a ") + type_ if type_.isalpha() and type_ != "None" else type_


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
    article = ask.chance(0.5)
    each = [f"{ask.name(name)} is {_an(type_) if article else type_}" for name, type_ in types.items()]
    same = set(types.values())
    if len(same) == 1 and len(types) > 1:
        each = [
            " and ".join([", ".join(map(ask.name, list(types)[:-1])), ask.name(list(types)[-1])]) + (
                " are " if ask.chance(0.7) else " are both " if len(types) == 2 else " are all "
            ) + next(iter(same)),
        ]
    back = _an(returned) if article and returned != "None" else returned
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
            if isinstance(
                inner,
                ast.AugAssign,
            ) and isinstance(inner.op, ast.Add) and ast.unparse(inner.target) == name:
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
            if len(rest) == 1 and isinstance(rest[0], ast.Return) and (
                not branch.orelse or at == len(function.body) - 1
            ):
                values = [n.value and ast.unparse(n.value) for n in (branch.body[0], rest[0])]
                if sorted(map(str, values)) == ["False", "True"]:
                    found.append((function, owner, branch, rest[0], values[0] == "True"))
    function, owner, branch, last, straight = ask.choice(found)
    require(source.is_only(function))
    require(not any("#" in line for line in source.lines[branch.lineno - 1 : last.end_lineno]))
    test = source.text_of(branch.test)
    require(isinstance(branch.test, (ast.Compare, ast.Name, ast.Attribute, ast.Call)) and len(test) < 70)
    opposite = {
        "==": "!=",
        "!=": "==",
        "<": ">=",
        ">": "<=",
        "<=": ">",
        ">=": "<",
        " is ": " is not ",
        " in ": " not in ",
    }
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
    function, f = ask.function_around(node)
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


@kind(9)
def unused_import(ask):
    """Removes the import of a name that nothing uses, in words that give the reason."""
    source = ask.source
    nodes = [n for n in source.tree.body if isinstance(n, (ast.Import, ast.ImportFrom)) and n.lineno == n.end_lineno]
    used = [t.string for t in source.tokens if t.type == tokenize.NAME]
    found = [(n, a) for n in nodes for a in n.names if used.count(a.name) == 1 and not a.asname and "." not in a.name]
    node, alias = ask.choice(found)
    line = source.lines[node.lineno - 1]
    require("#" not in line and ";" not in line and "(" not in line and source.count_of(alias.name) == 1)
    lines = list(source.lines)
    left = [a for a in node.names if a is not alias]
    if left:
        head = f"from {'.' * node.level}{node.module or ''} import " if isinstance(
            node,
            ast.ImportFrom,
        ) else "import "
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


@kind(60)
def with_block(ask):
    """Opens a file in a with block where the statement that opens it is followed by a single use and a close."""
    source, found = ask.source, []
    for node in source.nodes(ast.AST):
        body = getattr(node, "body", None)
        for at, first in enumerate(body) if isinstance(body, list) else []:
            opened = re.fullmatch(r"(\w+) = open\(.*\)", ast.unparse(first)) if isinstance(first, ast.Assign) else None
            if opened:
                close = f"{opened[1]}.close()"
                ends = [i for i in range(at + 2, len(body)) if ast.unparse(body[i]) == close]
                found += [(opened[1], first, body[ends[0]])] if ends else []
    name, first, last = ask.choice(found)
    require(first.lineno == first.end_lineno)
    require(not any('"""' in line for line in source.lines[first.lineno : last.lineno]))
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


@kind(40)
def bare_except(ask):
    """Gives the only `except:` of the file, or of a function, an exception."""
    source = ask.source
    handlers = [n for n in source.nodes(ast.ExceptHandler) if n.type is None]
    found = [n for n in handlers if source.lines[n.lineno - 1].strip() == "except:"]
    node, place = ask.choice(found), ""
    if len(found) > 1:
        function, f = ask.function_around(node)
        require(len(within(function, found)) == 1)
        place = " in " + f
    new = ask.choice(["ValueError", "Exception", "KeyError", "OSError", "TypeError", "ValueError", "IndexError"])
    line = source.lines[node.lineno - 1]
    return ask.say(
        "catch {new} instead of a bare except{place}",
        "catch [only|just|] {new}{place}",
        "avoid the bare except{place}, catch {new}",
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
    message = ask.choice(
        [
            f"{argument} must be positive",
            f"invalid {argument}",
            f"bad {argument}",
            f"no {argument}",
            f"{argument} is wrong",
            "invalid",
        ]
    )
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
    said = ask.say(
        *[form.replace("{words}", words) for form in forms],
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
        function, f = ask.function_around(ask.choice(pairs)[0])
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
