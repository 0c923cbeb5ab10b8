"""Files made hostile to a model that copies: more passages that look alike, so that more context is needed to go on.

Each drill takes a text and returns another one that parses, or raises NotApplicable.
"""
import ast
import re
import tokenize

from python_source import NotApplicable, RESERVED, Source, first_line, pick, require
from vocabulary import NOUNS, VERBS

CHARACTERS_MAX = 2200  # how much a drill may add


def _words(source):
    return sorted({n for n in source.names() if n not in RESERVED and len(n) > 2 and not n.startswith("__")})


def alike_functions(random, source):
    """Repeats a function or a method some times with few names, numbers or strings changed."""
    functions = [
        (f, p)
        for f, p, _ in source.functions()
        if isinstance(p, (ast.Module, ast.ClassDef)) and not f.name.startswith("__")
    ]
    function, parent = pick(random, [x for x in functions if x[0].end_lineno - first_line(x[0]) < 24])
    begin, end = first_line(function), function.end_lineno
    block = "\n".join(source.lines[begin:end])
    gap = [""] if isinstance(parent, ast.ClassDef) else ["", ""]
    local = sorted({w for w in re.findall(r"\b[a-z_]{3,}\b", block) if w not in RESERVED and w != function.name})
    put, used = [], source.names()
    for _ in range(random.choice([1, 1, 2, 3])):
        suffix = random.choice(
            ["_" + random.choice(NOUNS), "s", "_all", "_by_" + random.choice(NOUNS), "_" + random.choice(VERBS)]
        )
        name = function.name + suffix if random.random() < 0.7 else random.choice(VERBS) + "_" + function.name
        if name in used:
            continue
        used.add(name)
        changes = {function.name: name}
        for word in random.sample(local, min(len(local), random.choice([0, 0, 1, 1, 2]))):
            changes[word] = random.choice([word + "s", word + "_" + random.choice(NOUNS), random.choice(NOUNS)])
        copy = re.sub(r"\b[a-z_A-Z]\w*\b", lambda m: changes.get(m[0], m[0]), block)
        if random.random() < 0.6:
            numbers = list(re.finditer(r"(?<![\w.])\d{1,3}(?![\w.])", copy))
            if numbers:
                match = random.choice(numbers)
                copy = copy[: match.start()] + str(random.randint(0, 99)) + copy[match.end() :]
        put += gap + copy.split("\n")
    require(put)
    return source.with_lines(end, put)


def repeated_lines(random, source):
    """Puts copies of a simple line, alone or with its neighbor changed, at other places of the same function."""
    holders = [f for f, _, _ in source.functions() if f.end_lineno - f.lineno > 4]
    function = pick(random, holders)
    simple = [
        n
        for n in ast.walk(function)
        if isinstance(n, (ast.Assign, ast.Expr, ast.AugAssign)) and n.lineno == n.end_lineno
    ]
    simple = [n for n in simple if not isinstance(getattr(n, "value", None), ast.Constant) or isinstance(n, ast.Assign)]
    lines = list(source.lines)
    line = lines[pick(random, simple).lineno - 1].strip()
    require(";" not in line and not line.startswith(("def ", "class ")) and not line.endswith(":") and len(line) < 90)
    places = random.sample(simple, min(len(simple), random.choice([1, 2, 3])))
    for node in sorted(places, key=lambda n: -n.lineno):
        if lines[node.lineno - 1].strip() == lines[node.lineno - 1].strip().rstrip(":;\\"):
            lines.insert(node.lineno, " " * node.col_offset + line)
    return "\n".join(lines)


def shared_prefixes(random, source):
    """Renames identifiers to a family of names that begin alike: item, items, item_list, process_item."""
    words = [w for w in _words(source) if w.islower()]
    require(len(words) >= 3)
    stem = random.choice(
        [random.choice(NOUNS), random.choice(VERBS) + "_" + random.choice(NOUNS), random.choice(words)]
    )
    family = [
        stem,
        stem + "s",
        stem + "_list",
        stem + "_by_id",
        "load_" + stem + "s",
        stem + "_" + random.choice(NOUNS),
        stem + "s_by_name",
        "new_" + stem,
        stem + "_2",
        "process_" + stem,
        "process_" + stem + "s",
    ]
    family = [name for name in family if name not in words and name.isidentifier() and name not in RESERVED]
    imported = {a.asname or a.name for n in source.nodes(ast.Import, ast.ImportFrom) for a in n.names}
    words = [w for w in words if w not in imported]
    chosen = random.sample(words, min(len(words), len(family), random.choice([3, 4, 5, 6])))
    changes = dict(zip(chosen, random.sample(family, len(chosen))))
    text, count = source.replace_tokens(lambda t: changes.get(t.string) if t.type == tokenize.NAME else None)
    require(count)
    return text


def names_in_strings(random, source):
    """Puts names of the file into its strings and comments: "users", "users.csv", "no users"."""
    words = [w for w in _words(source) if w.isidentifier() and len(w) > 3]
    require(words)
    few = random.sample(words, min(len(words), 4))
    count = 0

    def replaced(token):
        nonlocal count
        if (
            token.type == tokenize.STRING
            and re.fullmatch(r"([\"'])[^\"'\\{}%\n]{1,40}\1", token.string)
            and random.random() < 0.5
        ):
            count += 1
            word = random.choice(few)
            form = random.choice(
                [
                    "{}",
                    "{}.csv",
                    "{}.json",
                    "no {}",
                    "{} is missing",
                    "{}_id",
                    "data/{}.txt",
                    "{}s",
                    "invalid {}",
                    "the {} of {}",
                ]
            )
            return token.string[0] + form.replace("{}", word, 1).replace("{}", random.choice(few)) + token.string[0]
        if token.type == tokenize.COMMENT and random.random() < 0.5:
            count += 1
            return "# " + random.choice(["{} comes first", "see {}", "the {} is set here", "TODO: check {}"]).format(
                random.choice(few)
            )
        return None

    text, _ = source.replace_tokens(replaced)
    require(count)
    return text


def alike_tests(random, source):
    """Appends a row of tests or small functions that differ in one word or number."""
    name = pick(random, [w for w in _words(source) if w.islower()])
    a, b = random.sample(NOUNS, 2)
    shape = random.choice(
        [
            'def test_{name}_{x}():\n    {a} = {name}({n})\n    assert {a} == {m}\n    assert {a}.{b} == "{x}"',
            'def test_{x}():\n    {a} = {name}("{x}", {n})\n    {b} = {a}.{name}\n    assert {b} is not None\n    assert {b} == {m}',
            "def {x}_{name}({a}, {b}=None):\n    if {b} is None:\n        return {a}.{x}\n    return {a}.{name} + {n}",
            'def get_{x}({a}):\n    {b} = {a}["{x}"]\n    if {b} is None:\n        raise ValueError("{x} is missing")\n    return {b}',
        ]
    )
    put = []
    for x in random.sample([w for w in NOUNS if w not in source.names()], random.choice([2, 3, 4, 5])):
        values = {
            "name": name,
            "x": x,
            "a": a,
            "b": b,
            "n": str(random.choice([1, 2, 3, 10])),
            "m": str(random.choice([1, 2, 4, 10])),
        }
        put.append(re.sub(r"\{(\w+)\}", lambda m: values[m[1]], shape))
    return source.text.rstrip("\n") + "\n\n\n" + "\n\n\n".join(put) + "\n"


DRILLS = (alike_functions, alike_functions, repeated_lines, shared_prefixes, names_in_strings, alike_tests)


def hostile(random, text):
    """Returns the text after one to three drills; a drill that does not fit, or that grows it too much, is left out."""
    source = Source(text)
    source.tree
    for drill in random.sample(DRILLS, random.choice([1, 2, 3])):
        try:
            changed = Source(drill(random, source))
            changed.tree
            require(len(changed.text) <= len(text) + CHARACTERS_MAX and "`" * 3 not in changed.text)
        except (NotApplicable, IndexError):
            continue
        source = changed
    return source.text
