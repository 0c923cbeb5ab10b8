"""Code edits made by program, each with an instruction as a person might write it.

An edit is a function (random, Source) -> (instruction, new text) that raises NotApplicable where it does not fit. The
instruction must determine the new file: a reader of it can tell the one right answer.
"""
import ast
import re
import tokenize

from python_source import (
    NotApplicable,
    RESERVED,
    Source,
    a_function,
    a_simple_line,
    body_start,
    docstring_node,
    first_line,
    indent_of,
    pick,
    require,
    without_lines,
)

NOUNS = (
    "data value item result config count index name path buffer node event handler client request response table column "
    "record user group token cache limit offset start stop parser reader writer stream queue worker task status flag mode "
    "level total width height score weight label source target entry field option context session state batch model query "
    "filter map list info text line key prefix suffix root parent child size length depth order step rate ratio error "
    "message code type kind format version base extra default current previous next first last raw clean safe fast local "
    "remote main temp final active open ready"
).split()
VERBS = (
    "get set load save read write parse build make create update remove find check compute run process handle send fetch "
    "apply convert merge split render validate init close reset flush collect resolve"
).split()
CLASS_ENDINGS = (
    "Manager Handler Reader Writer Builder Parser Client Server Node Event Config Record Table Buffer Cache Queue Worker "
    "Filter Encoder Decoder Loader Factory Context Session Adapter Proxy Visitor Base View Model Form Field"
).split()
EXCEPTIONS = "ValueError TypeError KeyError OSError RuntimeError Exception AttributeError IndexError".split()
MODULES = (
    "logging os sys re json time math random functools itertools collections warnings pathlib typing threading".split()
)
TYPES = "int str bool float None list dict bytes tuple object".split()


def called(random, function, owner):
    """Returns a name for a function as an instruction would use it."""
    ways = [f"the {'method' if owner else 'function'} `{function.name}`", f"`{function.name}`", f"`{function.name}()`"]
    return random.choice(ways + ([f"`{owner.name}.{function.name}`"] if owner else []))


def a_sentence(random):
    noun, verb = (lambda: random.choice(NOUNS)), (lambda: random.choice(VERBS))
    return random.choice(
        [
            f"{verb().capitalize()} the {noun()} {noun()}.",
            f"Return the {noun()} of the {noun()}.",
            f"{verb().capitalize()} the {noun()} from the {noun()} {noun()}.",
            f"See the {noun()} {noun()} for details.",
            f"The {noun()} is {random.choice(['empty', 'cached', 'ready', 'valid', 'missing', 'closed'])} when the {noun()} is set.",
        ]
    )


def new_name(random, old, used, pool):
    for _ in range(20):
        way = random.random()
        if old.isupper() and len(old) > 1:
            name = "_".join(random.sample(NOUNS, random.choice([1, 2, 2]))).upper()
        elif old[:1].isupper():
            name = (
                random.choice(NOUNS).capitalize() + random.choice(CLASS_ENDINGS)
                if way < 0.7
                else random.choice(["Base", "My", "Simple", "Custom"]) + old
            )
        elif way < 0.4 and pool:
            name = random.choice(pool)
        elif way < 0.65:
            name = random.choice(VERBS) + "_" + random.choice(NOUNS)
        elif way < 0.75:
            name = random.choice(NOUNS) + "_" + random.choice(NOUNS)
        elif way < 0.85:
            name = random.choice(NOUNS)
        elif way < 0.93:
            name = old + "_" + random.choice(NOUNS + ["v2", "new", "old", "impl"])
        else:
            name = random.choice(["new_", "my_", "_", "do_"]) + old
        if (
            name not in used
            and name not in RESERVED
            and name.isidentifier()
            and name[:1].isupper() == old[:1].isupper()
        ):
            return name
    raise NotApplicable


class Editor:
    """All kinds of edits; `names` are identifiers that renames may take."""

    def __init__(self, names):
        self.name_pool = [name for name in names if not name[:1].isupper()]

    # ---- replace everywhere

    def _renamed(self, random, source, what):
        if what == "function":
            candidates = [f.name for f, _, _ in source.functions() if not f.name.startswith("__")]
        elif what == "class":
            candidates = [n.name for n in ast.walk(source.tree) if isinstance(n, ast.ClassDef)]
        elif what == "variable":
            candidates = [
                n.id for n in ast.walk(source.tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
            ]
        else:
            candidates = [a.arg for f, _, _ in source.functions() for a in f.args.args + f.args.kwonlyargs]
        old = pick(random, [name for name in candidates if name not in RESERVED and len(name) > 1])
        new = new_name(random, old, source.names(), self.name_pool)
        text, count = source.replace_tokens(lambda t: new if t.type == tokenize.NAME and t.string == old else None)
        require(0 < count <= 40)
        return old, new, text

    def rename(self, random, source):
        what = random.choice(["function", "function", "class", "variable", "variable", "parameter"])
        old, new, text = self._renamed(random, source, what)
        return (
            random.choice(
                [
                    f"Rename the {what} `{old}` to `{new}`",
                    f"Rename `{old}` to `{new}`",
                    f"Rename {what} `{old}` to `{new}` everywhere",
                    f"Change the name of the {what} `{old}` to `{new}`",
                    f"Replace every use of `{old}` with `{new}`",
                    f"`{old}` should be called `{new}`",
                ]
            ),
            text,
        )

    def rename_several(self, random, source):
        pairs = []
        for _ in range(random.choice([2, 2, 3, 4])):
            old, new, text = self._renamed(random, source, random.choice(["variable", "function", "parameter"]))
            require(old not in [n for _, n in pairs])
            pairs.append((old, new))
            source = Source(text)
        said = [f"`{old}` to `{new}`" for old, new in pairs]
        return "Rename " + ", ".join(said[:-1]) + " and " + said[-1], source.text

    def number(self, random, source):
        numbers = [
            t for t in source.tokens if t.type == tokenize.NUMBER and re.fullmatch(r"\d{1,6}|\d+\.\d+", t.string)
        ]
        token = pick(random, numbers)
        old, row = token.string, token.start[0] - 1
        new = (
            f"{random.random() * random.choice([1, 10]):.2f}"
            if "." in old
            else str(
                random.choice(
                    [
                        random.randint(0, 9),
                        random.randint(10, 99),
                        random.choice([100, 128, 200, 256, 500, 512, 1000, 1024, 3600, 8080]),
                    ]
                )
            )
        )
        require(new != old)
        line = source.lines[row]
        stripped = line.strip()
        assigned = re.fullmatch(r"(\w+)\s*=\s*" + re.escape(old), stripped)
        if (
            assigned
            and len(re.findall(rf"^\s*{assigned.group(1)}\s*=[^=]", source.text, re.M)) == 1
            and random.random() < 0.6
        ):
            name = assigned.group(1)
            said = random.choice(
                [
                    f"Set `{name}` to {new}",
                    f"Change `{name}` to {new}",
                    f"Change the value of `{name}` from {old} to {new}",
                ]
            )
        elif [t.string for t in numbers].count(old) == 1:
            said = random.choice(
                [
                    f"Change the number {old} to {new}",
                    f"Change the constant {old} to {new}",
                    f"Replace the number {old} with {new}",
                    f"Use {new} instead of {old}",
                ]
            )
        else:
            require(
                [x.strip() for x in source.lines].count(stripped) == 1
                and line.count(old) == 1
                and len(stripped) < 80
                and "`" not in stripped
            )
            said = random.choice(
                [f"In the line `{stripped}`, change {old} to {new}", f"Change {old} to {new} in `{stripped}`"]
            )
        lines = list(source.lines)
        lines[row] = line[: token.start[1]] + new + line[token.end[1] :]
        return said, "\n".join(lines)

    def string(self, random, source):
        plain = re.compile(r"""(["'])([^"'\\{}%\n]{2,40})\1""")
        old = pick(
            random,
            sorted(
                plain.fullmatch(t.string).group(2)
                for t in source.tokens
                if t.type == tokenize.STRING and plain.fullmatch(t.string)
            ),
        )
        way = random.random()
        if way < 0.2:
            new = old.lower() if old.isupper() else old.upper()
        elif way < 0.35:
            new = old + random.choice(["!", "_v2", " (new)", ".bak", "-" + random.choice(NOUNS)])
        else:
            new = (
                a_sentence(random).rstrip(".") if " " in old else "_".join(random.sample(NOUNS, random.choice([1, 2])))
            )
        require(new != old and "`" not in old)

        def replaced(token):
            match = plain.fullmatch(token.string) if token.type == tokenize.STRING else None
            return match.group(1) + new + match.group(1) if match and match.group(2) == old else None

        text, count = source.replace_tokens(replaced)
        require(0 < count < 5)
        return (
            random.choice(
                [
                    f'Change the string "{old}" to "{new}"',
                    f'Replace "{old}" with "{new}"',
                    f'Use the string "{new}" instead of "{old}"',
                ]
            ),
            text,
        )

    def quotes(self, random, source):
        old, new, old_name, new_name_ = random.choice([("'", '"', "single", "double"), ('"', "'", "double", "single")])
        plain = re.compile(old + r"""[^"'\\\n]*""" + old)
        text, count = source.replace_tokens(
            lambda t: new + t.string[1:-1] + new if t.type == tokenize.STRING and plain.fullmatch(t.string) else None
        )
        require(count >= 2)
        return (
            random.choice(
                [
                    f"Change {old_name} quotes to {new_name_} quotes",
                    f"Use {new_name_} quotes instead of {old_name} quotes",
                    f"Convert all {old_name}-quoted strings to {new_name_} quotes",
                ]
            ),
            text,
        )

    def operator(self, random, source):
        old, new = random.choice(
            [
                ("==", "!="),
                ("!=", "=="),
                ("<=", "<"),
                (">=", ">"),
                ("<", "<="),
                (">", ">="),
                ("and", "or"),
                ("or", "and"),
                ("+=", "-="),
                ("+", "-"),
                ("True", "False"),
                ("False", "True"),
            ]
        )
        text, count = source.replace_tokens(
            lambda t: new if t.string == old and t.type in (tokenize.OP, tokenize.NAME) else None
        )
        require(0 < count < 12)
        return random.choice([f"Change every `{old}` to `{new}`", f"Replace `{old}` with `{new}` everywhere"]), text

    # ---- take away

    def delete_function(self, random, source):
        function, parent, owner = a_function(random, source)
        require(len(getattr(parent, "body", [])) > 1)
        begin, end = first_line(function), function.end_lineno
        f = called(random, function, owner)
        return random.choice(
            [f"Delete {f}", f"Remove {f}", f"Drop {f}", f"{f} is no longer needed, remove it", f"Get rid of {f}"]
        ), "\n".join(without_lines(source.lines, begin, end))

    def delete_class(self, random, source):
        node = pick(random, [n for n in source.tree.body if isinstance(n, ast.ClassDef)])
        require(len(source.tree.body) > 1)
        return random.choice([f"Delete the class `{node.name}`", f"Remove the class `{node.name}`"]), "\n".join(
            without_lines(source.lines, first_line(node), node.end_lineno)
        )

    def keep_only(self, random, source):
        tops = [n for n in source.tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef))]
        require(len(tops) >= 3)
        kept, lines = random.choice(tops), source.lines
        for node in reversed(tops):
            if node is not kept:
                lines = without_lines(lines, first_line(node), node.end_lineno)
        return random.choice(
            [
                f"Remove all functions and classes except `{kept.name}`",
                f"Keep only `{kept.name}` and delete the other functions and classes",
            ]
        ), "\n".join(lines)

    def delete_line(self, random, source):
        at, text = a_simple_line(random, source, (ast.Expr, ast.Assign, ast.AugAssign, ast.Import, ast.ImportFrom))
        return random.choice(
            [f"Delete the line `{text}`", f"Remove the line `{text}`", f"Remove `{text}`", f"Drop the line `{text}`"]
        ), "\n".join(source.lines[:at] + source.lines[at + 1 :])

    def delete_import(self, random, source):
        node = pick(
            random,
            [
                n
                for n in source.tree.body
                if isinstance(n, (ast.Import, ast.ImportFrom)) and n.lineno == n.end_lineno and len(n.names) == 1
            ],
        )
        name = node.names[0].asname or node.names[0].name
        text = source.lines[node.lineno - 1]
        require(";" not in text and source.lines.count(text) == 1)
        return random.choice(
            [f"Remove the import `{text}`", f"Drop the import of `{name}`", f"Remove the import of `{name}`"]
        ), "\n".join(source.lines[: node.lineno - 1] + source.lines[node.lineno :])

    def delete_docstring(self, random, source):
        if random.random() < 0.3:
            found = [docstring_node(f) for f, _, _ in source.functions() if docstring_node(f) and len(f.body) > 1]
            said = random.choice(["Remove the docstrings of all functions", "Delete all function docstrings"])
        else:
            function, _, owner = a_function(random, source)
            require(len(function.body) > 1)
            found = [docstring_node(function)] if docstring_node(function) else []
            f = called(random, function, owner)
            said = random.choice([f"Remove the docstring of {f}", f"Delete the docstring from {f}"])
        require(found)
        lines = list(source.lines)
        for node in sorted(found, key=lambda n: -n.lineno):
            del lines[node.lineno - 1 : node.end_lineno]
        return said, "\n".join(lines)

    def delete_comments(self, random, source):
        lines, count = list(source.lines), 0
        for token in reversed(source.tokens):
            if token.type != tokenize.COMMENT:
                continue
            row, begin = token.start[0] - 1, token.start[1]
            count += 1
            if lines[row][:begin].strip():
                lines[row] = lines[row][:begin].rstrip()
            else:
                del lines[row]
        require(count)
        return random.choice(["Remove all comments", "Delete every comment", "Strip the comments"]), "\n".join(lines)

    # ---- put in

    def add_import(self, random, source):
        module = random.choice(MODULES)
        line = random.choice(
            [f"import {module}"] * 3
            + [
                f"from typing import {random.choice(['Any', 'Dict', 'List', 'Optional'])}",
                f"from {module} import {random.choice(NOUNS)}",
            ]
        )
        require(line not in source.lines)
        imports = [n for n in source.tree.body if isinstance(n, (ast.Import, ast.ImportFrom))]
        if not imports:
            require(docstring_node(source.tree) is None if source.tree.body else False)
            at, where = 0, "at the top of the file"
        elif random.random() < 0.5:
            at, where = imports[0].lineno - 1, random.choice(["before the first import", "at the top of the imports"])
        else:
            at, where = imports[-1].end_lineno, random.choice(["after the last import", "at the end of the imports"])
        return random.choice(
            [f"Add `{line}` {where}", f"Insert `{line}` {where}", f"Add the import `{line}` {where}"]
        ), "\n".join(source.lines[:at] + [line] + source.lines[at:])

    def add_docstring(self, random, source):
        function, _, owner = a_function(random, source)
        require(docstring_node(function) is None)
        at = first_line(function.body[0])
        while at > function.lineno and (
            source.lines[at - 1].strip().startswith("#") or not source.lines[at - 1].strip()
        ):
            at -= 1
        words, f = a_sentence(random), called(random, function, owner)
        line = " " * function.body[0].col_offset + f'"""{words}"""'
        return random.choice(
            [
                f'Add the docstring "{words}" to {f}',
                f'Give {f} the docstring "{words}"',
                f'Insert a docstring in {f}: "{words}"',
            ]
        ), "\n".join(source.lines[:at] + [line] + source.lines[at:])

    def add_comment(self, random, source):
        comment = "# " + random.choice(
            [
                a_sentence(random),
                f"TODO: {random.choice(VERBS)} the {random.choice(NOUNS)}",
                "NOTE: " + a_sentence(random),
            ]
        )
        if random.random() < 0.5:
            function, _, owner = a_function(random, source, 200)
            at, indent, where = first_line(function), function.col_offset, called(random, function, owner)
        else:
            at, text = a_simple_line(random, source)
            indent, where = indent_of(source.lines[at]), f"the line `{text}`"
        side = random.choice(["above", "before"])
        return random.choice(
            [
                f"Add the comment `{comment}` {side} {where}",
                f"Insert the comment `{comment}` {side} {where}",
                f"Put `{comment}` {side} {where}",
            ]
        ), "\n".join(source.lines[:at] + [" " * indent + comment] + source.lines[at:])

    def add_first_line(self, random, source):
        function, _, owner = a_function(random, source)
        at, indent = body_start(function, source)
        name, f = function.name, called(random, function, owner)
        line = random.choice(
            [
                f'print("{name}")',
                f'print("entering {name}")',
                f'logger.debug("{name} called")',
                f'logger.info("calling {name}")',
                f'logging.debug("enter {name}")',
                f"print('{name} called')",
                f'logger.warning("{name} is deprecated")',
            ]
        )
        return random.choice(
            [
                f"Add `{line}` at the start of {f}",
                f"Insert `{line}` as the first line of the body of {f}",
                f"Start {f} with `{line}`",
            ]
        ), "\n".join(source.lines[:at] + [" " * indent + line] + source.lines[at:])

    def add_line(self, random, source):
        at, text = a_simple_line(random, source, (ast.Assign, ast.Expr, ast.AugAssign))
        a, b = random.choice(NOUNS), random.choice(NOUNS)
        line = random.choice(
            [
                f"{a} = {b}",
                f"{a} = None",
                f"{a}.{random.choice(VERBS)}({b})",
                f"print({a})",
                f"assert {a} is not None",
                f"{random.choice(VERBS)}_{a}({b})",
                f"{a} += 1",
                f"del {a}",
            ]
        )
        after = random.random() < 0.7
        put = at + 1 if after else at
        side = "after" if after else "before"
        return random.choice([f"Add `{line}` {side} the line `{text}`", f"Insert `{line}` {side} `{text}`"]), "\n".join(
            source.lines[:put] + [" " * indent_of(source.lines[at]) + line] + source.lines[put:]
        )

    def add_guard(self, random, source):
        function, _, owner = a_function(random, source)
        at, indent = body_start(function, source)
        argument = pick(random, [a.arg for a in function.args.args if a.arg not in ("self", "cls")])
        condition = random.choice([f"{argument} is None", f"not {argument}"])
        f = called(random, function, owner)
        if random.random() < 0.6:
            value = random.choice(["None", "False", "[]", "0", argument])
            action = f"return {value}"
            said = random.choice(
                [
                    f"At the start of {f}, return {value} if `{condition}`",
                    f"Make {f} return {value} when `{condition}`",
                    f"Add a guard to {f}: if `{condition}`, return {value}",
                ]
            )
        else:
            error, words = random.choice(EXCEPTIONS[:2]), random.choice(
                [f"{argument} is required", f"invalid {argument}", f"missing {argument}"]
            )
            action = f'raise {error}("{words}")'
            said = random.choice(
                [
                    f'At the start of {f}, raise {error}("{words}") if `{condition}`',
                    f'Make {f} raise {error}("{words}") when `{condition}`',
                ]
            )
        return said, "\n".join(
            source.lines[:at] + [" " * indent + f"if {condition}:", " " * (indent + 4) + action] + source.lines[at:]
        )

    def add_decorator(self, random, source):
        function, _, owner = a_function(random, source, 200)
        require(not function.decorator_list)
        decorator = random.choice(
            [
                "@" + random.choice(VERBS) + "_" + random.choice(NOUNS),
                "@cached",
                "@property",
                "@staticmethod",
                "@functools.wraps",
                "@profile",
            ]
        )
        f, at = called(random, function, owner), function.lineno - 1
        return random.choice(
            [
                f"Add the decorator `{decorator}` to {f}",
                f"Decorate {f} with `{decorator}`",
                f"Put `{decorator}` above {f}",
            ]
        ), "\n".join(source.lines[:at] + [" " * function.col_offset + decorator] + source.lines[at:])

    def add_function(self, random, source):
        a, b = random.sample(NOUNS, 2)
        name = random.choice(VERBS) + "_" + random.choice(NOUNS)
        require(name not in source.names())
        body = random.choice(
            [
                f"return {a}",
                f"return {a} + {b}",
                f"return {a} * 2",
                f"print({a})",
                "raise NotImplementedError",
                f"return [{a}, {b}]",
            ]
        )
        classes = [n for n in source.tree.body if isinstance(n, ast.ClassDef) and not isinstance(n.body[-1], ast.Expr)]
        if classes and random.random() < 0.4:
            node = random.choice(classes)
            put = ["", f"    def {name}(self, {a}, {b}):", f"        {body}"]
            return random.choice(
                [
                    f"Add a method `{name}(self, {a}, {b})` with the body `{body}` at the end of the class `{node.name}`",
                    f"Append the method `def {name}(self, {a}, {b}): {body}` to the class `{node.name}`",
                ]
            ), "\n".join(source.lines[: node.end_lineno] + put + source.lines[node.end_lineno :])
        return (
            random.choice(
                [
                    f"Add a function `{name}({a}, {b})` with the body `{body}` at the end of the file",
                    f"Append the function `def {name}({a}, {b}): {body}`",
                ]
            ),
            source.text.rstrip("\n") + f"\n\n\ndef {name}({a}, {b}):\n    {body}\n",
        )

    def add_parameter(self, random, source):
        function, _, owner = a_function(random, source, 200)
        arguments = function.args
        require(not (arguments.vararg or arguments.kwarg or arguments.kwonlyargs))
        name = random.choice(NOUNS + ["verbose", "timeout", "strict", "debug", "encoding", "retries"])
        require(name not in [a.arg for a in arguments.args])
        said = name + "=" + random.choice(["None", "False", "True", "0", "1", "10", '""', "()"])
        head = re.match(r"(\s*(?:async )?def \w+\()(.*)(\)(?:\s*->\s*.*)?:)$", source.lines[function.lineno - 1])
        require(head)
        lines = list(source.lines)
        lines[function.lineno - 1] = head[1] + (head[2] + ", " if head[2].strip() else "") + said + head[3]
        f = called(random, function, owner)
        return random.choice(
            [
                f"Add a parameter `{said}` to {f}",
                f"Add the argument `{said}` to {f}",
                f"Give {f} a new last parameter `{said}`",
            ]
        ), "\n".join(lines)

    def return_type(self, random, source):
        function, _, owner = a_function(random, source, 300)
        line = source.lines[function.lineno - 1]
        require(function.returns is None and re.match(r"\s*(async )?def .*\):$", line))
        kind, f = random.choice(TYPES), called(random, function, owner)
        lines = list(source.lines)
        lines[function.lineno - 1] = line[:-1] + f" -> {kind}:"
        return random.choice(
            [
                f"Annotate the return type of {f} as `{kind}`",
                f"Add the return type `{kind}` to {f}",
                f"Declare that {f} returns `{kind}`",
            ]
        ), "\n".join(lines)

    # ---- change in place

    def replace_line(self, random, source):
        at, text = a_simple_line(random, source)
        a, b = random.choice(NOUNS), random.choice(NOUNS)
        line = random.choice(
            [
                f"{a} = {b}",
                f"return {a}",
                "pass",
                f"{a}.{random.choice(VERBS)}({b})",
                f"raise {random.choice(EXCEPTIONS)}({a})",
                f"return {a}.{b}",
            ]
        )
        lines = list(source.lines)
        lines[at] = " " * indent_of(lines[at]) + line
        return random.choice([f"Replace the line `{text}` with `{line}`", f"Change `{text}` to `{line}`"]), "\n".join(
            lines
        )

    def comment_out(self, random, source):
        if random.random() < 0.4:
            function, parent, owner = a_function(random, source, 30)
            require(len(getattr(parent, "body", [])) > 1)
            begin, end, f = first_line(function), function.end_lineno, called(random, function, owner)
            said = f"Comment out {f}"
        else:
            begin, text = a_simple_line(random, source)
            end = begin + 1
            said = random.choice(
                [f"Comment out the line `{text}`", f"Comment out `{text}`", f"Disable the line `{text}` with a comment"]
            )
        lines, indent = list(source.lines), indent_of(source.lines[begin])
        for at in range(begin, end):
            if lines[at].strip():
                lines[at] = lines[at][:indent] + "# " + lines[at][indent:]
        return said, "\n".join(lines)

    def empty_body(self, random, source):
        function, _, owner = a_function(random, source)
        at, indent = body_start(function, source)
        require(function.end_lineno - at >= 2)
        line, f = random.choice(["raise NotImplementedError", "pass", "return None"]), called(random, function, owner)
        return random.choice(
            [f"Replace the body of {f} with `{line}`", f"Make the body of {f} just `{line}`"]
        ), "\n".join(source.lines[:at] + [" " * indent + line] + source.lines[function.end_lineno :])

    def wrap_in_try(self, random, source):
        function, _, owner = a_function(random, source, 25)
        at, indent = body_start(function, source)
        require(
            not any(
                isinstance(n, ast.Constant) and isinstance(n.value, str) and n.end_lineno > n.lineno
                for statement in function.body[1 if docstring_node(function) else 0 :]
                for n in ast.walk(statement)
            )
        )
        error, f = random.choice(EXCEPTIONS), called(random, function, owner)
        handler, does = random.choice(
            [
                ("raise", "re-raises it"),
                ("pass", "ignores it"),
                ("return None", "returns None"),
                (f'print("error in {function.name}")', f'prints "error in {function.name}"'),
            ]
        )
        body = ["    " + line if line.strip() else line for line in source.lines[at : function.end_lineno]]
        return random.choice(
            [
                f"Wrap the body of {f} in a try/except that catches {error} and {does}",
                f"Put the body of {f} in try/except {error} that {does}",
            ]
        ), "\n".join(
            source.lines[:at]
            + [" " * indent + "try:"]
            + body
            + [" " * indent + f"except {error}:", " " * (indent + 4) + handler]
            + source.lines[function.end_lineno :]
        )

    def swap_functions(self, random, source):
        groups = [source.tree.body] + [n.body for n in ast.walk(source.tree) if isinstance(n, ast.ClassDef)]
        pairs = []
        for group in groups:
            functions = [n for n in group if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]
            pairs += [(a, b) for a, b in zip(functions, functions[1:]) if a.name != b.name]
        a, b = pick(random, pairs)
        lines = source.lines
        require(b.end_lineno - first_line(a) <= 90)
        return random.choice(
            [
                f"Swap the functions `{a.name}` and `{b.name}`",
                f"Swap `{a.name}` and `{b.name}`",
                f"Move `{b.name}` before `{a.name}`",
            ]
        ), "\n".join(
            lines[: first_line(a)]
            + lines[first_line(b) : b.end_lineno]
            + lines[a.end_lineno : first_line(b)]
            + lines[first_line(a) : a.end_lineno]
            + lines[b.end_lineno :]
        )

    def indentation(self, random, source):
        require(not any(t.type == tokenize.STRING and t.start[0] != t.end[0] for t in source.tokens))
        require(
            all(indent_of(line) % 4 == 0 for line in source.lines if line.strip())
            and any(indent_of(line) for line in source.lines)
        )
        width = random.choice([2, 2, 8])
        lines = [
            " " * (indent_of(line) // 4 * width) + line.lstrip(" ") if line.strip() else line for line in source.lines
        ]
        return random.choice(
            [f"Indent with {width} spaces instead of 4", f"Change the indentation to {width} spaces"]
        ), "\n".join(lines)


KINDS = {  # the weight of each kind when one is drawn; kinds that fit any file have a smaller weight
    "rename": 13,
    "rename_several": 4,
    "number": 9,
    "string": 5,
    "quotes": 8,
    "operator": 6,
    "delete_function": 12,
    "delete_class": 4,
    "keep_only": 3,
    "delete_line": 4,
    "delete_import": 2,
    "delete_docstring": 5,
    "delete_comments": 5,
    "add_import": 0.8,
    "add_docstring": 5,
    "add_comment": 3,
    "add_first_line": 4,
    "add_line": 3,
    "add_guard": 5,
    "add_decorator": 4,
    "add_function": 0.8,
    "add_parameter": 5,
    "return_type": 5,
    "replace_line": 2,
    "comment_out": 4,
    "empty_body": 4,
    "wrap_in_try": 4,
    "swap_functions": 3,
    "indentation": 2,
}


def apply_edit(editor, random, text, kind):
    """Returns (instruction, new text); the new text still parses and differs from the old one."""
    try:
        said, new = getattr(editor, kind)(random, Source(text))
    except (IndexError, RecursionError):
        raise NotApplicable from None
    require(new != text and "`" * 3 not in new and "\n" not in said)
    Source(new).tree
    return said, new


def make_edit(editor, random, text, edit_count=None, kinds=None):
    """Returns (instruction, new text, kinds): one to four edits with one instruction."""
    count = edit_count or random.choices([1, 2, 3, 4], [70, 18, 8, 4])[0]
    names, weights = list(kinds or KINDS), [KINDS[kind] for kind in (kinds or KINDS)]
    current, said, done = text, [], []
    for _ in range(count * 6):
        if len(said) == count:
            break
        kind = random.choices(names, weights)[0]
        try:
            instruction, current = apply_edit(editor, random, current, kind)
        except NotApplicable:
            continue
        said.append(instruction)
        done.append(kind)
    require(said and current != text)
    if len(said) == 1:
        instruction = said[0] + random.choice([".", ".", ""])
    elif random.random() < 0.5:
        instruction = "\n".join(f"{n}. {one}." for n, one in enumerate(said, 1))
    else:
        instruction = ". ".join(said) + "."
    return instruction[0].upper() + instruction[1:], current, done
