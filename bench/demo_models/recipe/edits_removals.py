"""Kinds of edits that take something away."""
import ast
import re
import tokenize

from edit_request import kind
from python_source import a_simple_line, docstring_node, first_line, indent_of, require, without_lines
from wordings import Code, Name

REMOVE = "[delete|remove|drop|delete|remove|get rid of]"


def removal(ask, what, *more, **slots):
    """Words the removal of {x}."""
    return ask.say(
        REMOVE + " " + what,
        REMOVE + " " + what,
        "take " + what + " out",
        "={x} [is no longer needed, remove it|is not needed any more, delete it|can go|is unused, remove it]".replace(
            "{x}", what
        ),
        "={x} should [be removed|be deleted|go]".replace("{x}", what),
        REMOVE + " " + what + ", [nobody uses it|it's not needed|it is not used|it's dead code|we don't need it]",
        "=[we don't|we do not] need " + what + " [any more|anymore], [remove it|delete it]",
        *more,
        **slots,
    )


@kind(9.4)
def delete_function(ask):
    function, parent, f = ask.drawn_function()
    require(len(getattr(parent, "body", [])) > 1)
    lines = without_lines(ask.source.lines, first_line(function), function.end_lineno)
    return removal(ask, "{f}", "={f} is dead code, please delete it", f=f), "\n".join(lines)


@kind(4.9)
def delete_class(ask):
    node = ask.choice([n for n in ask.source.tree.body if isinstance(n, ast.ClassDef)])
    require(len(ask.source.tree.body) > 1)
    lines = without_lines(ask.source.lines, first_line(node), node.end_lineno)
    return removal(ask, "{c}", REMOVE + " the whole class {n}", c=ask.class_(node.name), n=Name(node.name)), "\n".join(
        lines
    )


@kind(6.1)
def keep_only(ask):
    tops = [n for n in ask.source.tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef))]
    require(len(tops) >= 3)
    kept, lines = ask.choice(tops), ask.source.lines
    for node in reversed(tops):
        if node is not kept:
            lines = without_lines(lines, first_line(node), node.end_lineno)
    return ask.say(
        "[remove|delete] all functions and classes except {k}",
        "[remove|delete] [every function and class|all functions and classes] [except|but] {k}",
        "keep only {k} and [delete|remove] [the other|all other] functions and classes",
        "[delete|remove] all [other functions and classes|functions and classes other than {k}], keep [only|just] {k}",
        "=of the functions and classes, only {k} should stay",
        k=Name(kept.name),
    ), "\n".join(lines)


@kind(3.1)
def delete_line(ask):
    at, text = a_simple_line(ask.random, ask.source, (ast.Expr, ast.Assign, ast.AugAssign, ast.Import, ast.ImportFrom))
    return removal(
        ask,
        "the line {line}",
        "[delete|remove|drop] {line}",
        "[delete|remove] the [statement|line of code] {line}",
        "[delete|remove|take out] this line: {line}",
        "[delete|remove] the line that says {line}",
        line=Code(text),
    ), without_top_gap(ask.source.lines[:at] + ask.source.lines[at + 1 :])


def without_top_gap(lines):
    """Joins lines without empty ones at the top, where the first import stood."""
    while len(lines) > 1 and not lines[0].strip():
        lines = lines[1:]
    return "\n".join(lines)


def used_names(source):
    return [t.string for t in source.tokens if t.type == tokenize.NAME]


@kind(2.7)
def delete_import(ask):
    source = ask.source
    nodes = [n for n in source.nodes(ast.Import, ast.ImportFrom) if n.col_offset == 0 and n.lineno == n.end_lineno]
    node = ask.choice([n for n in nodes if len(n.names) == 1])
    name, text = node.names[0].asname or node.names[0].name, source.lines[node.lineno - 1]
    require(
        ";" not in text
        and source.lines.count(text) == 1
        and [a.asname or a.name for n in nodes for a in n.names].count(name) == 1
    )
    unused = used_names(source).count(name) == 1
    return ask.say(
        "[remove|delete|drop] the import [of|for|] {name}",
        "[remove|delete|drop] the {name} import",
        "[remove|delete|drop] [the import|the line|] {line}",
        "={line} [is not needed, remove it|should be removed|can go]",
        "=we [don't|do not] need the {name} import [any more|anymore], remove it",
        "[remove|delete|drop] the unused import [of|] {name}" if unused else "don't import {name} [any more|anymore]",
        "=the {name} import is unused, [remove it|delete it|drop it]"
        if unused
        else "[stop importing|no longer import] {name}",
        name=Name(name),
        line=Code(text),
    ), without_top_gap(source.lines[: node.lineno - 1] + source.lines[node.lineno :])


@kind(4.5)
def delete_unused_imports(ask):
    """Removes all imports, or names of them, that nothing in the file uses."""
    source = ask.source
    words = re.findall(r"\w+", source.text)
    lines, gone = list(source.lines), []
    for node in sorted(source.nodes(ast.Import, ast.ImportFrom), key=lambda n: -n.lineno):
        require(node.lineno == node.end_lineno and ";" not in lines[node.lineno - 1])
        require(node.col_offset == 0 and "*" not in [a.name for a in node.names])
        names = [(a.asname or a.name).split(".")[0] for a in node.names]
        keep = [a for a, name in zip(node.names, names) if words.count(name) > 1]
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            continue
        if not keep:
            del lines[node.lineno - 1]
        elif len(keep) < len(names):
            line = lines[node.lineno - 1]
            require("#" not in line and "(" not in line)
            head = re.match(r"(from \S+ import |import )", line)[1]
            lines[node.lineno - 1] = head + ", ".join(a.name + (f" as {a.asname}" if a.asname else "") for a in keep)
        gone += [name for a, name in zip(node.names, names) if a not in keep]
    require(gone and len(gone) <= 8)
    many = "[remove|delete|drop|clean up|get rid of] [the unused imports|all unused imports|unused imports|imports that are not used|every unused import]"
    one = "[remove|delete|drop] [the unused import|the import that is not used|the import that nothing uses]"
    return ask.say(
        many,
        one if len(gone) == 1 else many,
        "=[no unused imports, please|the unused imports should go|imports that nothing uses should go]",
        "[strip|clear] [the unused imports|all unused imports]",
    ), without_top_gap(lines)


@kind(3.9)
def delete_imported_name(ask):
    """Removes one name of an import of several."""
    source = ask.source
    nodes = [
        n
        for n in source.nodes(ast.ImportFrom)
        if n.lineno == n.end_lineno and len(n.names) > 1 and n.module and not n.level
    ]
    node = ask.choice(nodes)
    line = source.lines[node.lineno - 1]
    head = re.match(r"(\s*from \S+ import )([\w, ]+)$", line)
    require(head and all(a.asname is None for a in node.names))
    name = ask.choice(node.names).name
    keep = [a.name for a in node.names if a.name != name]
    require([a.name for n in nodes for a in n.names].count(name) == 1)
    unused = used_names(source).count(name) == 1
    return ask.say(
        "[remove|delete|drop] {name} from the import [of|from] {module}",
        "[remove|delete|drop] the import of {name}",
        "[don't|do not|no longer] import {name} [from {module}|]",
        "in the import from {module}, [remove|drop|leave out] {name}",
        "[remove|delete|drop] {name} from the {module} import",
        "[remove|drop] the unused import {name}" if unused else "[remove|drop] the {name} import",
        "=we [don't|do not] need to import {name} [any more|anymore]",
        name=Name(name),
        module=Name(node.module),
    ), source.with_lines(node.lineno - 1, [head[1] + ", ".join(keep)], node.lineno)


@kind(4.3)
def delete_docstring(ask):
    if ask.chance(0.3):
        found = [docstring_node(f) for f, _, _ in ask.source.functions() if docstring_node(f) and len(f.body) > 1]
        require(len(found) == len([1 for f, _, _ in ask.source.functions() if docstring_node(f)]))
        said = ask.say(
            "[remove|delete|drop|strip] the docstrings of all functions",
            "[remove|delete|drop|strip] all function docstrings",
            "[remove|delete|strip] [every docstring of a function|the docstrings from the functions|docstrings from all functions and methods]",
            "=functions should [not have|have no] docstrings",
        )
    else:
        function, _, f = ask.drawn_function()
        require(len(function.body) > 1)
        found = [docstring_node(function)] if docstring_node(function) else []
        said = ask.say(
            "[remove|delete|drop] the docstring [of|from|in] {f}",
            "[remove|delete|drop] the docstring [of|from] {f}",
            "={f} should [not have a|have no] docstring",
            "={f} [needs|should have] no docstring",
            "in {f}, [remove|delete|drop] the docstring",
            "[get rid of|strip] the docstring in {f}",
            f=f,
        )
    require(found)
    lines = list(ask.source.lines)
    for node in sorted(found, key=lambda n: -n.lineno):
        require(not lines[node.lineno - 1][: node.col_offset].strip())
        del lines[node.lineno - 1 : node.end_lineno]
    return said, "\n".join(lines)


@kind(8.4)
def delete_comments(ask):
    lines, count = list(ask.source.lines), 0
    for token in reversed(ask.source.tokens):
        if token.type != tokenize.COMMENT:
            continue
        row, begin = token.start[0] - 1, token.start[1]
        count += 1
        if lines[row][:begin].strip():
            lines[row] = lines[row][:begin].rstrip()
        else:
            del lines[row]
    require(count)
    return ask.say(
        "[remove|delete|strip|drop|get rid of] [all|the|all the|every one of the] comments",
        "[remove|delete|strip|drop] [all|the] comments [from this file|in this file|from the code|in the code]",
        "[remove|delete|strip] every comment",
        "[strip|clear] [comments|all comments|the comments] out",
        "=[no comments, please|the code should have no comments|comments should go|all comments should go]",
    ), "\n".join(lines)


def is_call_of(statement, name):
    """Whether a statement is a call of a function with this dotted name."""
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Call)
        and ast.unparse(statement.value.func) == name
    )


@kind(34)
def delete_prints(ask):
    """Removes all print (or logger) statements, where each block keeps another statement."""
    source = ask.source
    names = ["print"] * 4 + [
        x for x in ("logger.debug", "logging.debug", "logger.info", "log.debug", "logging.info") if x in source.text
    ]
    name = ask.choice([n for n in names if n in source.text])
    function, f, rows = None, "", []
    if ask.chance(0.35):
        function, _, f = ask.drawn_function()
    for node in source.nodes(ast.AST):
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if not isinstance(block, list):
                continue
            found = [s for s in block if is_call_of(s, name)]
            if function:
                found = [s for s in found if function.lineno <= s.lineno <= function.end_lineno]
            require(not found or len(found) < len(block))
            rows += found
    require(0 < len(rows) <= 12)
    lines = list(source.lines)
    for statement in sorted(rows, key=lambda s: -s.lineno):
        require(
            ";" not in lines[statement.end_lineno - 1]
            and not lines[statement.lineno - 1][: statement.col_offset].strip()
        )
        del lines[statement.lineno - 1 : statement.end_lineno]
    what = name if name == "print" or ask.chance(0.5) else ask.name(name)
    if function:
        return ask.say(
            "[remove|delete|drop] [all|the] {what} [statements|calls|lines] [in|from] {f}",
            "in {f}, [remove|delete] [all|the] {what} [statements|calls|lines]",
            "={f} should not call {what}",
            f=f,
            what=what,
        ), "\n".join(lines)
    return ask.say(
        "[remove|delete|drop|strip|get rid of] [all|the|all the] {what} [statements|calls|lines]",
        "[remove|delete] every {what} [statement|call|line]",
        "=[no {what} statements, please|the {what} statements should go|the {what} calls are not needed any more, remove them]",
        "[clean up|take out] [all|the] {what} [statements|calls]",
        what=what,
    ), "\n".join(lines)


@kind(4.3)
def delete_decorator(ask):
    found = [(f, o, d) for f, _, o in ask.source.functions() for d in f.decorator_list if d.lineno == d.end_lineno]
    function, owner, node = ask.choice(found)
    require(ask.source.is_only(function))
    text = ask.source.lines[node.lineno - 1].strip()
    require(text.startswith("@") and "`" not in text)
    return ask.say(
        "[remove|delete|drop] the decorator {d} [from|of] {f}",
        "[remove|delete|drop] {d} [from|above] {f}",
        "[remove|delete|drop] the {d} decorator [from|of] {f}",
        "={f} should not be decorated with {d}",
        "={f} should not have [the decorator|] {d}",
        d=Code(text),
        f=ask.function(function, owner),
    ), ask.source.with_lines(node.lineno - 1, [], node.end_lineno)


@kind(14)
def delete_else(ask):
    """Removes the only else branch of an if in a function."""
    function, _, f = ask.drawn_function()
    found = []
    for node in ast.walk(function):
        if isinstance(node, ast.If) and node.orelse:
            first = node.orelse[0]
            row = first.lineno - 2
            while row > node.lineno and not ask.source.lines[row].strip().startswith("else:"):
                row -= 1
            if ask.source.lines[row].strip() == "else:" and indent_of(ask.source.lines[row]) < first.col_offset:
                found.append((row, node.orelse[-1].end_lineno))
    require(len(found) == 1)
    elses = [x for x in ask.source.lines[function.lineno - 1 : function.end_lineno] if re.match(r"\s*else\s*:", x)]
    require(len(elses) == 1)
    begin, end = found[0]
    return ask.say(
        "[remove|delete|drop] the else [branch|block|part|clause|] [of|in|from] {f}",
        "in {f}, [remove|delete|drop] the else [branch|block|part|]",
        "={f} should have no else [branch|block|]",
        "=the else in {f} [is not needed, remove it|should go|can go]",
        "[get rid of|take out] the else [branch|block] in {f}",
        f=f,
    ), ask.source.with_lines(begin, [], end)


@kind(37)
def delete_parameter(ask):
    """Removes a parameter that the body does not use, and its argument at the calls that name it."""
    source = ask.source
    function, _, f = ask.drawn_function(200)
    arguments = function.args
    require(not (arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.posonlyargs))
    names = [a.arg for a in arguments.args]
    body = "\n".join(source.lines[first_line(function.body[0]) : function.end_lineno])
    unused = [n for n in names if n not in ("self", "cls") and not re.search(rf"\b{n}\b", body)]
    name = ask.choice(unused)
    at, pairs = names.index(name), []
    for call in source.nodes(ast.Call):
        if ast.unparse(call.func).split(".")[-1] == function.name:
            require(not any(isinstance(a, ast.Starred) for a in call.args) and all(k.arg for k in call.keywords))
            keep = [a for i, a in enumerate(call.args) if i != at - (names[0] in ("self", "cls"))]
            keep += [k for k in call.keywords if k.arg != name]
            if len(keep) < len(call.args) + len(call.keywords):
                pairs.append((call, f"{source.text_of(call.func)}({', '.join(source.text_of(k) for k in keep)})"))
    require(len(pairs) < 6 and source.count_of(function.name) == 1 + text_count(source, function.name))
    head = re.match(r"(\s*(?:async )?def \w+\()(.*)(\)(?:\s*->\s*.*)?:)$", source.lines[function.lineno - 1])
    require(head)
    parts = split_commas(head[2])
    require(len(parts) == len(names))
    line = head[1] + ", ".join(p for i, p in enumerate(parts) if i != at) + head[3]
    lines = source.with_replaced(pairs).split("\n")
    lines[function.lineno - 1] = line
    return ask.say(
        "[remove|delete|drop] the [unused |]{what} {x} [from|of] {f}",
        "[remove|delete|drop] the [unused |]{what} {x} [from|of] {f}",
        "[remove|delete|drop] {x} from {f}'s [parameters|arguments|signature]",
        "in {f}, [remove|delete|drop] the {what} {x}",
        "={f} should not take [the {what}|] {x} [any more|anymore|]",
        "=the {what} {x} of {f} is [unused, remove it|not used, delete it|not needed, drop it]",
        "drop {x} from the {what}s of {f}",
        f=f,
        x=Name(name),
        what=ask.random.choice(["parameter", "argument"]),
    ), "\n".join(lines)


def text_count(source, name):
    """Counts the calls of a function in a file."""
    return sum(ast.unparse(call.func).split(".")[-1] == name for call in source.nodes(ast.Call))


def split_commas(text):
    """Splits parameters at the commas outside of brackets and strings."""
    parts, depth, quote, begin = [], 0, "", 0
    for at, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
        elif letter == "," and not depth:
            parts.append(text[begin:at].strip())
            begin = at + 1
    rest = text[begin:].strip()
    return parts + [rest] if rest else parts


@kind(1.5)
def delete_annotations(ask):
    function, _, f = ask.drawn_function()
    require(function.returns is not None)
    line = ask.source.lines[function.lineno - 1]
    head = re.match(r"(\s*(?:async )?def .*\))\s*->\s*[^()]+:$", line)
    require(head)
    return ask.say(
        "[remove|delete|drop] the return [type|annotation|type annotation|type hint] [of|from] {f}",
        "in {f}, [remove|drop] the return [type|annotation]",
        "={f} should have no return [annotation|type annotation|type hint]",
        f=f,
    ), ask.source.with_lines(function.lineno - 1, [head[1] + ":"], function.lineno)
