"""Kinds of edits that rewrite, wrap or move code."""
import ast
import re
import tokenize

from edit_request import kind
from python_source import a_simple_line, body_start, docstring_node, first_line, indent_of, require, without_lines
from vocabulary import EXCEPTIONS, NOUNS, VERBS, new_name
from wordings import Code, Name, Text


def scope(ask, nodes):
    """Narrows nodes to one function for a part of the requests. Returns (nodes, words for the place)."""
    if ask.chance(0.5):
        return nodes, ask.choice(["", "", " everywhere", " in this file", " throughout the file"])
    function, _, f = ask.drawn_function(200)
    return [n for n in nodes if function.lineno <= n.lineno <= function.end_lineno], " in " + f


@kind(1.7)
def replace_line(ask):
    at, text = a_simple_line(ask.random, ask.source)
    a, b = ask.choice(NOUNS), ask.choice(NOUNS)
    line = ask.choice(
        [
            f"{a} = {b}",
            f"return {a}",
            "pass",
            f"{a}.{ask.choice(VERBS)}({b})",
            f"raise {ask.choice(EXCEPTIONS)}({a})",
            f"return {a}.{b}",
            f"{a} = {ask.random.randint(0, 99)}",
            f"{a} = None",
            f"print({a})",
        ]
    )
    return ask.say(
        "replace the line {text} [with|by] {line}",
        "[change|turn] {text} [to|into] {line}",
        "change the line {text} to {line}",
        "replace {text} [with|by] {line}",
        "[write|put] {line} [instead of|in place of] {text}",
        "[rewrite|change] the [line|statement] {text} [as|to] {line}",
        "={text} [must|has to] become {line}",
        "use {line} instead of {text}",
        "={text} should be {line}",
        "={text} [->|=>] {line}",
        "instead of {text}, write {line}",
        "change this line: {text} [->|=>] {line}",
        text=Code(text),
        line=Code(line),
    ), ask.source.with_lines(at, [" " * indent_of(ask.source.lines[at]) + line], at + 1)


@kind(1.8)
def comment_out(ask):
    source = ask.source
    if ask.chance(0.4):
        function, parent, what = ask.drawn_function(30)
        require(len(getattr(parent, "body", [])) > 1)
        begin, end = first_line(function), function.end_lineno
    else:
        begin, text = a_simple_line(ask.random, source)
        end, code = begin + 1, ask.code(text, True)
        what = ask.choice(["the line " + code, "the line " + code, code])
    lines, indent = list(source.lines), indent_of(source.lines[begin])
    for at in range(begin, end):
        if lines[at].strip():
            lines[at] = lines[at][:indent] + "# " + lines[at][indent:]
    said = ask.say(
        "comment out {what}",
        "comment {what} out",
        "[make|turn] {what} into a comment",
        "[disable|deactivate] {what} [by commenting it out|with a #|with a comment]",
        "={what} [can|may|should] be commented out",
        "=[don't|do not] delete {what}, [just|only] comment it out",
        "disable {what} [with a comment|by commenting it out]",
        "turn {what} into a comment",
        "={what} should be commented out",
        what=what,
    )
    said.ends_open = said.text.endswith(what) and what[-1] not in "`'\""
    return said, "\n".join(lines)


@kind(1.4)
def empty_body(ask):
    function, _, f = ask.drawn_function()
    at, indent = body_start(function, ask.source)
    require(function.end_lineno - at >= 2)
    line = ask.choice(["raise NotImplementedError", "pass", "return None", "return False", "return []", "..."])
    return ask.say(
        "replace the body of {f} [with|by] {line}",
        "make the body of {f} just {line}",
        "[empty|stub out] {f}, its body should be [just|only] {line}",
        "in {f}, replace the [whole|entire] body with {line}",
        "={f} should [only|just] {line}" if line[0] != "." and line != "pass" else "={f} should have the body {line}",
        "turn {f} into a stub with {line}",
        "={line} should be the whole body of {f}",
        f=f,
        line=Code(line),
    ), ask.source.with_lines(at, [" " * indent + line], function.end_lineno)


@kind(2)
def wrap_in_try(ask):
    function, _, f = ask.drawn_function(25)
    at, indent = body_start(function, ask.source)
    statements = function.body[1 if docstring_node(function) else 0 :]
    strings = [n for s in statements for n in ast.walk(s) if isinstance(n, (ast.Constant, ast.JoinedStr))]
    require(not any(n.end_lineno > n.lineno for n in strings))
    error, quote = ask.choice(EXCEPTIONS), ask.source.quote()
    message = f"error in {function.name}"
    handler, does = ask.choice(
        [
            ("raise", "re-raises [it|them]"),
            ("pass", "ignores [it|them]"),
            ("return None", "returns None"),
            ("return False", "returns False"),
            (f"print({quote}{message}{quote})", "prints {message}"),
        ]
    )
    body = ["    " + line if line.strip() else line for line in ask.source.lines[at : function.end_lineno]]
    put = [" " * indent + "try:"] + body + [" " * indent + f"except {error}:", " " * (indent + 4) + handler]
    does_now = {
        "raise": "re-raise it",
        "pass": "ignore it",
        "return None": "return None",
        "return False": "return False",
    }.get(handler, "print {message}")
    return ask.say(
        "wrap the body of {f} in a try/except that catches {error} and " + does,
        "put the body of {f} in [try/except {error} that|a try block with an except {error} that] " + does,
        "wrap the [whole|entire] body of {f} in try/except {error} with {handler} in the except",
        "in {f}, catch {error} around the whole body and " + does_now,
        "add a try/except {error} around the body of {f} that " + does,
        "=the body of {f} should be in a try/except {error} that " + does,
        "surround the body of {f} with try and except {error}: {handler}",
        f=f,
        error=Name(error) if ask.chance(0.3) else error,
        message=Text(message),
        handler=Code(handler),
    ), ask.source.with_lines(at, put, function.end_lineno)


@kind(3.9)
def swap_functions(ask):
    source = ask.source
    groups = [source.tree.body] + [n.body for n in source.nodes(ast.ClassDef)]
    pairs = []
    for group in groups:
        functions = [n for n in group if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]
        pairs += [(a, b, len(functions) == 2) for a, b in zip(functions, functions[1:]) if a.name != b.name]
    a, b, is_all = ask.choice(pairs)
    lines, names = source.lines, [f.name for f, _, _ in source.functions()]
    require(b.end_lineno - first_line(a) <= 90 and names.count(a.name) == names.count(b.name) == 1)
    between = source.tree.body if a.col_offset == 0 else [n for n in source.nodes(ast.ClassDef) if a in n.body][0].body
    require(between.index(b) == between.index(a) + 1)
    require(not any(line.strip() for line in lines[a.end_lineno : first_line(b)]))
    return ask.say(
        "swap {a} and {b}",
        "swap the functions {a} and {b}",
        "[swap|exchange|switch] [the order of|the positions of|the places of] {a} and {b}",
        "move {b} [before|above|in front of] {a}",
        "move {a} [after|below|behind] {b}",
        "[put|place] {b} [before|above] {a}",
        "[put|place] {a} [after|below] {b}",
        "={b} should [come|be] [before|above] {a}",
        a=Name(a.name),
        b=Name(b.name),
    ), "\n".join(
        lines[: first_line(a)]
        + lines[first_line(b) : b.end_lineno]
        + lines[a.end_lineno : first_line(b)]
        + lines[first_line(a) : a.end_lineno]
        + lines[b.end_lineno :]
    )


@kind(3.4)
def move_function(ask):
    """Moves a top-level function or class to the end of the file, or in front of the first of them."""
    source = ask.source
    tops = [n for n in source.tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef))]
    require(len(tops) >= 2 and tops[-1] is source.tree.body[-1])
    node = ask.choice(tops)
    names = [f.name for f, _, _ in source.functions()] + [n.name for n in source.nodes(ast.ClassDef)]
    require(names.count(node.name) == 1 and node.end_lineno - first_line(node) < 60)
    begin, end = first_line(node), node.end_lineno
    require(not source.lines[begin - 1].startswith("#") if begin else True)
    moved = source.lines[begin:end]
    n = Name(node.name)
    if node is not tops[-1] and ask.chance(0.6):
        rest = "\n".join(without_lines(source.lines, begin, end)).rstrip("\n")
        return (
            ask.say(
                "move {n} to the [end|bottom] [of the file|]",
                "[put|place] {n} at the [end|bottom] of the file",
                "={n} should be [at the end of the file|the last thing in the file|at the bottom of the file]",
                "move {n} [behind|after|below] everything else",
                n=n,
            ),
            rest + "\n" + "\n".join(source.gap() + moved) + "\n",
        )
    require(node is not tops[0])
    first = first_line(tops[0])
    require(not source.lines[first - 1].startswith("#") if first else True)
    lines = without_lines(source.lines, begin, end)
    return ask.say(
        "move {n} before the first function or class",
        "move {n} above all other functions and classes",
        "make {n} the first [of the functions and classes|definition in the file]",
        "={n} should come before [all other functions and classes|every other function and class]",
        n=n,
    ), "\n".join(lines[:first] + moved + source.gap() + lines[first:])


@kind(1.3)
def copy_function(ask):
    """Adds a copy of a function under a new name right behind it."""
    source = ask.source
    function, parent, f = ask.drawn_function(25)
    require(not function.name.startswith("__") and isinstance(parent, (ast.Module, ast.ClassDef)))
    begin, end = first_line(function), function.end_lineno
    block = source.lines[begin:end]
    require(sum(len(re.findall(rf"\b{function.name}\b", line)) for line in block) == 1)
    new = (
        function.name + ask.choice(["_copy", "_v2", "_2", "_old", "_new"])
        if ask.chance(0.4)
        else new_name(ask.random, function.name, source.names(), ask.name_pool)
    )
    require(new not in source.names())
    copy = [re.sub(rf"\b{function.name}\b", new, line) for line in block]
    gap = [""] if isinstance(parent, ast.ClassDef) else source.gap()
    return ask.say(
        "[duplicate|copy] {f} [as|under the name] {new}",
        "[duplicate|copy] {f} and [call|name] the copy {new}",
        "make a copy of {f} [called|named] {new} [below it|right after it|]",
        "add a copy of {f} [called|named] {new} [after it|below it]",
        "[duplicate|copy] {f} right below as {new}",
        "=there should be a copy of {f} [called|named] {new} [after it|right below it]",
        f=f,
        new=Name(new),
    ), source.with_lines(end, gap + copy)


@kind(1.1)
def indentation(ask):
    source = ask.source
    require(not any(t.type == tokenize.STRING and t.start[0] != t.end[0] for t in source.tokens))
    require(all(indent_of(line) % 4 == 0 for line in source.lines if line.strip()))
    require(any(indent_of(line) for line in source.lines))
    width = ask.choice([2, 2, 8, "tab", 3])
    unit = "\t" if width == "tab" else " " * width
    lines = [unit * (indent_of(line) // 4) + line.lstrip(" ") if line.strip() else line for line in source.lines]
    by = "tabs" if width == "tab" else f"{width} spaces"
    return ask.say(
        "indent [with|by] {by} [instead of 4|instead of four|]",
        "change the indentation [to|from 4 spaces to] {by}",
        "use {by} [for indentation|to indent|per level] [instead of 4 spaces|instead of 4|]",
        "=the indentation should be {by}",
        "[re-indent|reindent] [the file|the code|everything] with {by}",
        "={by} instead of 4 [for indentation|]",
        "convert the indentation to {by}",
        by=by,
    ), "\n".join(lines)


@kind(40)
def sort_imports(ask):
    """Sorts one-line imports that stand together by their text."""
    source = ask.source
    nodes = [n for n in source.tree.body if isinstance(n, (ast.Import, ast.ImportFrom))]
    require(2 < len(nodes) < 25 and all(n.lineno == n.end_lineno for n in nodes))
    begin, end = nodes[0].lineno - 1, nodes[-1].lineno
    lines = source.lines[begin:end]
    require(end - begin == len(nodes) and all(re.match("import |from ", line) for line in lines))
    require(len({line.split()[0] for line in lines}) == 1)  # both orders that people use agree
    return ask.say(
        "sort the imports [alphabetically|]",
        "sort [the|all] imports [by name|in alphabetical order|alphabetically]",
        "[order|arrange] the imports [alphabetically|by name|in alphabetical order]",
        "put the imports [in|into] alphabetical order",
        "=the imports should be [sorted|in alphabetical order|sorted alphabetically]",
        "=imports [in alphabetical order|sorted alphabetically]",
    ), source.with_lines(begin, sorted(lines, key=str.lower), end)


@kind(4.8)
def name_number(ask):
    """Makes a constant behind the imports of a number."""
    source = ask.source
    numbers = [t for t in source.tokens if t.type == tokenize.NUMBER]
    token = ask.choice([t for t in numbers if re.fullmatch(r"\d{2,6}|\d\.\d+|[3-9]", t.string)])
    require(sum(t.string == token.string for t in numbers) == 1)
    line = source.lines[token.start[0] - 1]
    require(not re.fullmatch(r"[A-Z_]+ = [\d.]+", line))
    name = "_".join(ask.random.sample(NOUNS, 2)).upper()
    require(name not in source.names())
    imports = [n for n in source.tree.body if isinstance(n, (ast.Import, ast.ImportFrom))]
    lines = list(source.lines)
    lines[token.start[0] - 1] = line[: token.start[1]] + name + line[token.end[1] :]
    head = f"{name} = {token.string}"
    if imports:
        at = imports[-1].end_lineno
        lines[at:at] = ["", head]
        place = ask.choice(["", " after the imports", " below the imports"])
    else:
        require(not docstring_node(source.tree) and not lines[0].startswith("#"))
        lines[:0] = [head, "", ""] if re.match("def|class|@|async", lines[0]) else [head]
        place = ask.choice(["", " at the top of the file", " at the top"])
    return ask.say(
        "[turn {old} into|make {old}] a constant {name}{place}",
        "[extract|move|pull] {old} into a constant [called|named|] {name}{place}",
        "[introduce|define|add] a constant {name} for {old}{place} and use it",
        "replace the magic number {old} [with|by] a constant {name}{place}",
        "={old} should be a [module-level constant|constant] {name}{place}",
        "make a constant {name} out of [the number|the magic number] {old}{place}",
        old=token.string,
        name=Name(name),
        place=place,
    ), "\n".join(lines)


@kind(48)
def none_identity(ask):
    source = ask.source
    nodes = [
        n
        for n in source.nodes(ast.Compare)
        if len(n.ops) == 1 and isinstance(n.comparators[0], ast.Constant) and n.comparators[0].value is None
    ]
    old_op, new_op = ask.choice(
        [("==", "is"), ("!=", "is not"), ("is", "=="), ("is not", "!="), ("==", "is"), ("!=", "is not")]
    )
    operators = {"==": ast.Eq, "!=": ast.NotEq, "is": ast.Is, "is not": ast.IsNot}
    nodes = [n for n in nodes if isinstance(n.ops[0], operators[old_op])]
    nodes, place = scope(ask, nodes)
    require(0 < len(nodes) < 10)
    pairs = [(n, f"{source.text_of(n.left)} {new_op} None") for n in nodes]
    require(all(source.text_of(n) == f"{source.text_of(n.left)} {old_op} None" for n in nodes))
    every = ask.choice(["", "all ", "every "]) if len(nodes) > 1 else ""
    return ask.say(
        "use {new} instead of {old}{place}",
        "replace {every}{old} [with|by] {new}{place}",
        "change {every}{old} to {new}{place}",
        "compare with None by {op_new}, not by {op}{place}",
        "[check for|test for|compare to|compare with] None [with|by|using] {op_new} [instead of|not|rather than] {op}{place}",
        "={new}, not {old}{place}",
        "[write|put] {new} instead of {old}{place}",
        "[turn|convert] {every}{old} [into|to] {new}{place}",
        "compare [to|with] None [with|using] {op_new} [instead of {op}|not {op}|rather than {op}]{place}",
        "={old} should be {new}{place}",
        "={old} [->|=>] {new}{place}",
        old=Code(f"{old_op} None"),
        new=Code(f"{new_op} None"),
        op=Code(old_op),
        op_new=Code(new_op),
        every=every,
        place=place,
    ), source.with_replaced(pairs)


@kind(5.5)
def use_isinstance(ask):
    """Turns `type(x) == T` into isinstance, or isinstance into it."""
    source, nodes = ask.source, []
    back = ask.chance(0.6)
    if back:
        nodes = [
            n
            for n in source.nodes(ast.Call)
            if isinstance(n.func, ast.Name)
            and n.func.id == "isinstance"
            and len(n.args) == 2
            and isinstance(n.args[1], (ast.Name, ast.Attribute))
        ]
    else:
        for n in source.nodes(ast.Compare):
            if (
                isinstance(n.left, ast.Call)
                and isinstance(n.left.func, ast.Name)
                and n.left.func.id == "type"
                and len(n.ops) == 1
                and isinstance(n.ops[0], (ast.Eq, ast.Is))
            ):
                nodes.append(n)
    node = ask.choice(nodes)
    old = source.text_of(node)
    require(source.text.count(old) == 1 and len(old) < 60 and "`" not in old)
    if back:
        before = source.lines[node.lineno - 1][: node.col_offset].split()
        require(not before or before[-1] != "not")
        new = f"type({source.text_of(node.args[0])}) == {source.text_of(node.args[1])}"
        return ask.say(
            "replace {old} with {new}",
            "change {old} to {new}",
            "use {new} instead of {old}",
            "={old} [->|=>|should be] {new}",
            "compare types instead: {old} -> {new}",
            old=Code(old),
            new=Code(new),
        ), source.with_replaced([(node, new)])
    new = f"isinstance({source.text_of(node.left.args[0])}, {source.text_of(node.comparators[0])})"
    return ask.say(
        "use isinstance [instead of|rather than] {old}",
        "replace {old} with isinstance",
        "replace {old} with {new}",
        "[turn|change] {old} into [an isinstance check|{new}]",
        "={old} should [use isinstance|be an isinstance check]",
        "use {new} instead of {old}",
        "={old} [->|=>] isinstance",
        old=Code(old),
        new=Code(new),
    ), source.with_replaced([(node, new)])


# ---- strings and printing


def f_string_of(source, node):
    """Returns the f-string for `%`, `+` or `.format` on a string, or None."""

    def usable(expression):
        text = source.text_of(expression)
        require(re.fullmatch(r"[\w.]+(\[\w+\])?|[\w.]+\([\w., ]*\)", text))
        return text

    def quoted(constant):
        text = source.text_of(constant)
        require(
            re.fullmatch(
                r"(\"[^\"\\{}%]*\"|'[^'\\{}%]*')" if not isinstance(node, ast.Call) else r"(\"[^\"\\%]*\"|'[^'\\%]*')",
                text,
            )
        )
        return text

    def is_text(expression):
        return isinstance(expression, ast.Constant) and isinstance(expression.value, str)

    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and is_text(node.left):
        text = source.text_of(node.left)
        require(re.fullmatch(r"\"[^\"\\{}]*\"|'[^'\\{}]*'", text))
        pieces = re.split(r"%s|%d", text)
        values = node.right.elts if isinstance(node.right, ast.Tuple) else [node.right]
        require(len(pieces) == len(values) + 1 and not any("%" in p for p in pieces))
        require(not isinstance(node.right, ast.Tuple) or values)
        found = [usable(v) for v in values]
        return "f" + pieces[0] + "".join("{" + v + "}" + p for v, p in zip(found, pieces[1:]))
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "format"
        and is_text(node.func.value)
    ):
        text = quoted(node.func.value)
        pieces = text.split("{}")
        require(
            len(pieces) == len(node.args) + 1 and not node.keywords and not any("{" in p or "}" in p for p in pieces)
        )
        found = [usable(v) for v in node.args]
        require(found)
        return "f" + pieces[0] + "".join("{" + v + "}" + p for v, p in zip(found, pieces[1:]))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        terms, at = [], node
        while isinstance(at, ast.BinOp) and isinstance(at.op, ast.Add):
            terms.insert(0, at.right)
            at = at.left
        terms.insert(0, at)
        require(sum(is_text(t) for t in terms) and sum(not is_text(t) for t in terms))
        mark, text = None, ""
        for term in terms:
            if is_text(term):
                said = quoted(term)
                mark = mark or said[0]
                require(said[0] == mark)
                text += said[1:-1]
            elif (
                isinstance(term, ast.Call)
                and isinstance(term.func, ast.Name)
                and term.func.id == "str"
                and len(term.args) == 1
            ):
                text += "{" + usable(term.args[0]) + "}"
            else:
                require(isinstance(term, (ast.Name, ast.Attribute)))
                text += "{" + usable(term) + "}"
        return "f" + mark + text + mark
    return None


@kind(29)
def use_f_string(ask):
    source = ask.source
    nodes = [n for n in source.nodes(ast.BinOp, ast.Call) if n.lineno == n.end_lineno]
    texts = [
        n
        for n in nodes
        if (isinstance(n, ast.BinOp) and isinstance(n.op, (ast.Mod, ast.Add)))
        or (isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr == "format")
    ]
    texts = [n for n in texts if '"' in source.lines[n.lineno - 1] or "'" in source.lines[n.lineno - 1]]
    inner = {id(n.left) for n in texts if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Add)}
    texts = [n for n in texts if id(n) not in inner]
    texts = [n for n in texts if any(isinstance(c, ast.Constant) and isinstance(c.value, str) for c in ast.walk(n))]
    node = ask.choice(texts)
    new = f_string_of(source, node)
    require(new)
    old = source.text_of(node)
    require(source.text.count(old) == 1 and len(new) < 100)
    holders = [(f, o) for f, _, o in source.functions() if f.lineno <= node.lineno <= f.end_lineno]
    slots = dict(old=Code(old))
    forms = [
        "[turn|convert|change] {old} [into|to] an f-string",
        "use an f-string [instead of|for] {old}",
        "replace {old} [with|by] an f-string",
        "={old} should be an f-string",
        "rewrite {old} as an f-string",
    ]
    if holders and source.is_only(holders[-1][0]):
        same = [n for n in texts if holders[-1][0].lineno <= n.lineno <= holders[-1][0].end_lineno]
        if len(same) == 1 and ask.chance(0.6):
            slots["f"] = ask.function(*holders[-1])
            forms = [
                "use an f-string in {f}",
                "use an f-string [instead of {way}|] in {f}",
                "in {f}, use an f-string [instead of {way}|rather than {way}]",
                "[convert|change|turn] the string in {f} [to|into] an f-string",
                "={f} should use an f-string",
                "replace {way} in {f} with an f-string",
                "make the string in {f} an f-string",
            ]
            slots["way"] = (
                ask.choice(["+", "concatenation", "string concatenation"])
                if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add)
                else "%"
                if isinstance(node, ast.BinOp)
                else "format"
            )
    elif len(texts) == 1 and ask.chance(0.6):
        forms = [
            "use an f-string [instead of string formatting|]",
            "[convert|change] the string to an f-string",
            "use an f-string",
        ]
    said = ask.say(*forms, **slots)
    require("`" not in old)
    return said, source.with_replaced([(node, new)])


@kind(7.8)
def change_call(ask):
    """Calls another function: print to logger and back, or one that is drawn."""
    source = ask.source
    present = [
        name
        for name in (
            "print",
            "logger.info",
            "logger.debug",
            "logging.info",
            "logger.warning",
            "logger.error",
            "log.info",
            "print",
            "open",
            "len",
            "str",
        )
        if name + "(" in source.text
    ]
    old = ask.choice(present)
    news = {"open": ["io.open", "gzip.open"], "len": ["count", "size"], "str": ["repr"]}
    loggers = ["logger.info", "logger.debug", "logging.info", "logger.warning", "logging.debug", "logger.error"]
    new = (
        ask.choice(["print"] * (old != "print") * 2 + [x for x in loggers if x != old])
        if old not in news
        else ask.choice(news[old])
    )
    nodes = [
        n.func
        for n in source.nodes(ast.Call)
        if isinstance(n.func, (ast.Name, ast.Attribute)) and not n.keywords and ast.unparse(n.func) == old
    ]
    if old == "print":
        require(all(len(n.args) == 1 for n in source.nodes(ast.Call) if ast.unparse(n.func) == "print"))
    nodes, place = scope(ask, nodes)
    require(0 < len(nodes) < 12)
    require(
        place.startswith(" in ")
        and place != " in this file"
        or len(re.findall(rf"(?<![\w.]){re.escape(old)}\(", source.text)) == len(nodes)
    )
    pairs = [(n, new) for n in nodes]
    end = ask.choice(["", "", "()"])
    return ask.say(
        "use {new} instead of {old}{place}",
        "replace {old} [with|by] {new}{place}",
        "[change|turn] {old} [to|into] {new}{place}",
        "replace [all|the] {old} calls [with|by] {new}{place}",
        "[change|convert|switch] the {old} [calls|statements] to {new}{place}",
        "call {new} instead of {old}{place}",
        "={old} [->|=>] {new}{place}",
        "={old} should be {new}{place}",
        "={new} instead of {old}{place}",
        "switch from {old} to {new}{place}",
        old=ask.name(old, end),
        new=ask.name(new, end),
        place=place,
    ), source.with_replaced(pairs)


@kind(1.3)
def make_async(ask):
    function, _, f = ask.drawn_function(200)
    row = function.lineno - 1
    line = ask.source.lines[row]
    calls = [n for n in ask.source.nodes(ast.Await)]
    if isinstance(function, ast.AsyncFunctionDef):
        require(not any(function.lineno <= n.lineno <= function.end_lineno for n in calls))
        require(
            line.lstrip().startswith("async def ")
            and "async" not in "\n".join(ask.source.lines[row + 1 : function.end_lineno])
        )
        require(ask.source.count_of(function.name) == 1)
        return ask.say(
            "make {f} [a normal function|synchronous|not async|sync]",
            "remove async from {f}",
            "={f} should not be async",
            "={f} should be synchronous",
            "drop the async from {f}",
            f=f,
        ), ask.source.with_lines(row, [line.replace("async def ", "def ", 1)], row + 1)
    require(line.lstrip().startswith("def "))
    return ask.say(
        "make {f} async",
        "={f} [must|needs to|has to] be async",
        "make {f} an async [def|function|method]",
        "[use|put] async def [for|in] {f}",
        "make {f} [an async function|asynchronous|a coroutine]",
        "turn {f} into [an async function|a coroutine]",
        "={f} should be [async|asynchronous|a coroutine|an async function]",
        "[convert|change] {f} [to an async function|to async]",
        "add async to {f}",
        "declare {f} [as async|async]",
        f=f,
    ), ask.source.with_lines(row, [line.replace("def ", "async def ", 1)], row + 1)


@kind(26)
def use_comprehension(ask):
    """Turns a list that a loop with a single append fills into a comprehension."""
    source = ask.source
    found = []
    for node in source.nodes(ast.AST):
        block = getattr(node, "body", None)
        for first, loop in zip(block, block[1:]) if isinstance(block, list) else []:
            if not (
                isinstance(first, ast.Assign)
                and isinstance(loop, ast.For)
                and isinstance(first.value, ast.List)
                and not first.value.elts
            ):
                continue
            inner = loop.body[0]
            test = None
            if isinstance(inner, ast.If) and not inner.orelse and len(inner.body) == 1:
                test, inner = inner.test, inner.body[0]
            target = ast.unparse(first.targets[0])
            if (
                len(loop.body) == 1
                and not loop.orelse
                and is_append(inner, target)
                and first.lineno == first.end_lineno == loop.lineno - 1
            ):
                found.append((first, loop, inner.value.args[0], test, target))
    first, loop, value, test, target = ask.choice(found)
    lines = source.lines[first.lineno - 1 : loop.end_lineno]
    require(not any("#" in line for line in lines))
    line = f"{target} = [{source.text_of(value)} for {source.text_of(loop.target)} in {source.text_of(loop.iter)}"
    line += f" if {source.text_of(test)}]" if test else "]"
    require(len(line) < 110 and [t for _, _, _, _, t in found].count(target) == 1)
    holders = [(f, o) for f, _, o in source.functions() if f.lineno <= first.lineno <= f.end_lineno]
    require(holders and source.is_only(holders[-1][0]))
    only = len([x for x in found if holders[-1][0].lineno <= x[0].lineno <= holders[-1][0].end_lineno]) == 1
    forms = [
        "build {x} with a [list comprehension|comprehension]",
        "use a [list comprehension|comprehension] for {x}",
        "replace the loop that [fills|builds] {x} [with|by] a [list comprehension|comprehension]",
        "={x} should be [built with a list comprehension|a list comprehension]",
    ]
    if only:
        forms += [
            "use a [list comprehension|comprehension] in {f}",
            "[turn|convert] the [loop|for loop] in {f} [into|to] a list comprehension",
            "in {f}, [use a list comprehension|replace the loop with a list comprehension]",
            "={f} should use a list comprehension",
        ] * 2
    return ask.say(*forms, x=Name(target), f=ask.function(*holders[-1])), source.with_lines(
        first.lineno - 1, [" " * first.col_offset + line], loop.end_lineno
    )


def is_append(statement, target):
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Call)
        and ast.unparse(statement.value.func) == target + ".append"
        and len(statement.value.args) == 1
    )


@kind(9.6)
def change_literal_call(ask):
    """`dict()` to `{}`, `list()` to `[]` and back, or a quoted attribute of a module."""
    source = ask.source
    old, new = ask.choice(
        [("dict()", "{}"), ("list()", "[]"), ("{}", "dict()"), ("[]", "list()"), ("{}", "dict()"), ("[]", "list()")]
    )
    nodes = [n for n in source.nodes(ast.Call, ast.Dict, ast.List) if ast.unparse(n) == old]
    nodes, place = scope(ask, nodes)
    require(0 < len(nodes) < 8 and all(source.text_of(n) == old for n in nodes))
    return ask.say(
        "use {new} instead of {old}{place}",
        "replace {old} [with|by] {new}{place}",
        "[change|turn] {old} [to|into] {new}{place}",
        "write {new} [instead of|for|rather than] {old}{place}",
        "={new} [instead of|not|rather than] {old}{place}",
        "[convert|switch] {old} to {new}{place}",
        "prefer {new} [over|to] {old}{place}",
        "={old} [->|=>|should be] {new}{place}",
        old=Code(old),
        new=Code(new),
        place=place,
    ), source.with_replaced([(n, new) for n in nodes])
