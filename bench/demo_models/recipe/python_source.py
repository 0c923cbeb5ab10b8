"""Python files as the edits see them: syntax tree, tokens and lines, and pieces of a file that could be files."""
import ast
import builtins
import io
import keyword
import re
import tokenize
import warnings

warnings.simplefilter("ignore", SyntaxWarning)  # the corpus has invalid escapes in strings
warnings.simplefilter("ignore", DeprecationWarning)

RESERVED = set(dir(builtins)) | set(keyword.kwlist) | {"self", "cls", "args", "kwargs", "super"}


class NotApplicable(Exception):
    pass


def _whole_strings(tokens, lines):
    """Returns the tokens with each f-string as one string, as versions before 3.12 give it."""
    if not hasattr(tokenize, "FSTRING_START"):
        return list(tokens)
    found, depth, start = [], 0, None
    for token in tokens:
        if token.type == tokenize.FSTRING_START:
            start, depth = start or token.start, depth + 1
        elif token.type == tokenize.FSTRING_END:
            depth -= 1
            if not depth:
                (row, begin), (last, end) = start, token.end
                parts = [lines[row - 1][begin:end]] if row == last else [lines[row - 1][begin:], *lines[row : last - 1], lines[last - 1][:end]]
                found.append(tokenize.TokenInfo(tokenize.STRING, "\n".join(parts), start, token.end, token.line))
                start = None
        elif not depth:
            found.append(token)
    return found


class Source:
    """A file with its syntax tree and tokens, which are made at first use."""

    def __init__(self, text):
        self.text = text
        self.lines = text.split("\n")
        self._tree = self._tokens = self._nodes = self._functions = None

    @property
    def tree(self):
        if self._tree is None:
            try:
                self._tree = ast.parse(self.text)
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                raise NotApplicable from None
        return self._tree

    @property
    def tokens(self):
        if self._tokens is None:
            try:
                self._tokens = _whole_strings(tokenize.generate_tokens(io.StringIO(self.text).readline), self.lines)
            except (tokenize.TokenError, SyntaxError):
                raise NotApplicable from None
        return self._tokens

    def names(self):
        return {t.string for t in self.tokens if t.type == tokenize.NAME}

    def nodes(self, *types):
        """Returns the nodes of these types in the order of a walk, without those inside of f-strings, whose positions
        are wrong."""
        if self._nodes is None:
            self._nodes, waiting = [], [self.tree]
            for node in waiting:
                self._nodes.append(node)
                if not isinstance(node, ast.JoinedStr):
                    waiting += ast.iter_child_nodes(node)
        return [node for node in self._nodes if isinstance(node, types)]

    def text_of(self, node):
        """Returns the text of a node that lies on one line."""
        line = self.lines[node.lineno - 1]
        require(node.lineno == node.end_lineno and line.isascii())
        return line[node.col_offset : node.end_col_offset]

    def count_of(self, name):
        """Counts how often a name occurs as a word anywhere, comments and strings included."""
        return len(re.findall(rf"(?<!\w){re.escape(name)}(?!\w)", self.text))

    def quote(self):
        """The quote that most strings of the file have."""
        return "'" if self.text.count("'") > self.text.count('"') else '"'

    def with_replaced(self, pairs):
        """Returns the text with (node, new text) pairs put in; each node lies on one line."""
        lines = list(self.lines)
        for node, new in sorted(pairs, key=lambda pair: (-pair[0].lineno, -pair[0].col_offset)):
            self.text_of(node)
            line = lines[node.lineno - 1]
            lines[node.lineno - 1] = line[: node.col_offset] + new + line[node.end_col_offset :]
        return "\n".join(lines)

    def gap(self):
        """Returns the empty lines between functions at the top level, two where the file does not tell."""
        single = len(re.findall(r"\S\n\n(?:async def|def|class|@)", self.text))
        return [""] if single > len(re.findall(r"\n\n\n(?:async def|def|class|@)", self.text)) else ["", ""]

    def with_appended(self, lines):
        """Returns the text with lines at its end, apart from what is before."""
        return self.text.rstrip("\n") + "\n" + "\n".join(self.gap() + lines) + "\n"

    def with_lines(self, at, put, end=None):
        """Returns the text with the lines [at, end) replaced by `put`."""
        return "\n".join(self.lines[:at] + put + self.lines[at if end is None else end :])

    def functions(self):
        """Returns (function, node that contains it, class or None), in the order of the file."""
        if self._functions is None:
            self._functions = self._found_functions()
        return self._functions

    def is_only(self, function):
        """Whether no other function of the file has this one's name."""
        return [f.name for f, _, _ in self.functions()].count(function.name) == 1

    def _found_functions(self):
        found = []

        def walk(node, owner):
            for child in ast.iter_child_nodes(node):
                if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    found.append((child, node, owner))
                    walk(child, owner)
                elif isinstance(child, ast.ClassDef):
                    walk(child, child)
                elif isinstance(child, (ast.If, ast.Try, ast.With, ast.For)):
                    walk(child, owner)

        walk(self.tree, None)
        return found

    def replace_tokens(self, replacement_of):
        """Returns (new text, number of replacements); tokens for which the function returns None stay."""
        lines, count = list(self.lines), 0
        for token in reversed(self.tokens):
            (row, begin), (last_row, end) = token.start, token.end
            replacement = replacement_of(token)
            if replacement is None or row != last_row:
                continue
            line = lines[row - 1]
            lines[row - 1] = line[:begin] + replacement + line[end:]
            count += 1
        return "\n".join(lines), count


def pick(random, items):
    if not items:
        raise NotApplicable
    return random.choice(items)


def require(condition):
    if not condition:
        raise NotApplicable


def within(function, nodes):
    """Returns the nodes whose first line is in the function."""
    return [n for n in nodes if function.lineno <= n.lineno <= function.end_lineno]


def first_line(node):
    """The 0-based first line of a node, decorators included."""
    return min([node.lineno] + [d.lineno for d in getattr(node, "decorator_list", [])]) - 1


def indent_of(line):
    return len(line) - len(line.lstrip(" "))


def docstring_node(function):
    statement = function.body[0]
    is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return statement if is_text and isinstance(statement.value.value, str) else None


def a_function(random, source, lines_max=60):
    """Picks a function whose name no other function of the file has and that spans more than one line."""
    return pick(
        random,
        [
            x
            for x in source.functions()
            if source.is_only(x[0])
            and x[0].end_lineno - x[0].lineno < lines_max
            and x[0].body[0].lineno > x[0].lineno
        ],
    )


def body_start(function, source):
    """Returns (0-based line, indent) of the first statement after the docstring, including the comments above it."""
    docstring = docstring_node(function)
    if docstring:
        require(len(function.body) > 1)
        return docstring.end_lineno, function.body[1].col_offset
    statement = function.body[0]
    at = first_line(statement)
    while at > function.lineno and source.lines[at - 1].strip().startswith("#"):
        at -= 1
    return at, statement.col_offset


def without_lines(lines, begin, end):
    """Removes [begin, end) and the blank lines after it or, at the end of the file, those before it."""
    while end < len(lines) and not lines[end].strip():
        end += 1
    if end < len(lines):
        return lines[:begin] + lines[end:]
    while begin > 0 and not lines[begin - 1].strip():
        begin -= 1
    return lines[:begin] + [""]


def a_simple_line(random, source, kinds=(ast.Expr, ast.Assign, ast.Return, ast.AugAssign)):
    """Picks (0-based line, its text) of a one-line statement whose text occurs once in the file."""
    stripped = [line.strip() for line in source.lines]
    found = []
    for node in source.nodes(*kinds):
        if node.lineno == node.end_lineno:
            text = stripped[node.lineno - 1]
            if (
                4 < len(text) <= 70
                and stripped.count(text) == 1
                and "`" not in text
                and ";" not in text
                and not text.startswith(('"', "'"))
            ):
                found.append((node.lineno - 1, text))
    return pick(random, sorted(found))


def _text_of(lines, nodes):
    begin = first_line(nodes[0])
    while begin > 0 and lines[begin - 1].startswith("#"):
        begin -= 1
    return "\n".join(lines[begin : nodes[-1].end_lineno]) + "\n"


def excerpt(random, source, characters_min, characters_max):
    """Picks a piece of a file that could be a file: consecutive top-level nodes, or a class with some methods."""
    if characters_min <= len(source.text) <= characters_max:
        return source.text if source.text.endswith("\n") else source.text + "\n"
    wanted, nodes, head = random.uniform(characters_min, characters_max), source.tree.body, ""
    if random.random() < 0.35:
        classes = [
            n
            for n in nodes
            if isinstance(n, ast.ClassDef) and n.end_lineno - n.lineno > 8 and n.body[0].lineno > n.lineno
        ]
        if classes:
            chosen = random.choice(classes)
            nodes = chosen.body
            head = "\n".join(source.lines[first_line(chosen) : first_line(nodes[0])]) + "\n"
    require(nodes)
    for _ in range(8):
        begin, text = random.randrange(len(nodes)), ""
        for end in range(begin + 1, len(nodes) + 1):
            longer = head + _text_of(source.lines, nodes[begin:end])
            if len(longer) > characters_max:
                break
            text = longer
            if len(text) >= wanted:
                break
        if len(text) < characters_min:
            continue
        if not head and random.random() < 0.35:
            imports = [
                n for n in nodes[:begin] if isinstance(n, (ast.Import, ast.ImportFrom)) and n.lineno == n.end_lineno
            ]
            lines = [source.lines[n.lineno - 1] for n in imports[: random.randint(1, 5)]]
            if lines and len(text) + sum(map(len, lines)) + 8 <= characters_max:
                text = "\n".join(lines) + "\n\n\n" + text
        Source(text).tree
        return text
    raise NotApplicable
