"""Kinds of small clean-ups that people ask for in a few words: newer forms of Python, private names, errors to stderr."""
import ast
import re
import tokenize

from edit_request import kind
from edits_names import an_attribute, one_meaning, with_attribute, with_name, with_name_in_function
from edits_values import some_words
from python_source import RESERVED, require
from vocabulary import new_name
from wordings import Name, Text

GENERICS = ("List", "Dict", "Set", "FrozenSet", "Tuple", "Type")


@kind(30)
def print_to_stderr(ask):
    """Has a print write to stderr; the file imports sys."""
    source = ask.source
    require(any(a.name == "sys" for n in source.nodes(ast.Import) for a in n.names))
    found = [
        n
        for n in source.nodes(ast.Call)
        if isinstance(n.func, ast.Name)
        and n.func.id == "print"
        and n.args
        and not any(k.arg == "file" or k.arg is None for k in n.keywords)
        and n.lineno == n.end_lineno
    ]
    node = ask.choice(found)
    text = source.text_of(node)
    require(source.text.count(text) == 1)
    strings = [n.value for n in ast.walk(node.args[0]) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    holders = [(f, o) for f, _, o in source.functions() if f.lineno <= node.lineno <= f.end_lineno]
    some = some_words(ask, strings[0]) if strings and ask.chance(0.6) else None
    if some:
        said = ask.say(
            "print the {some} message to stderr",
            "[send|write] the {some} [message|error|text|line] to [stderr|sys.stderr]",
            "=the {some} [message|error] should go to [stderr|sys.stderr]",
            "=the {some} [message|error] belongs on stderr",
            some=some,
        )
    elif len(strings) == 1 and len(strings[0]) > 3 and source.text.count(strings[0]) == 1 and "\n" not in strings[0]:
        said = ask.say(
            "print {message} to stderr",
            "print the message {message} to [stderr|sys.stderr]",
            "={message} should go to stderr",
            "send {message} to stderr [instead of stdout|]",
            message=Text(strings[0]),
        )
    else:
        near = [n for n in found if holders and holders[-1][0].lineno <= n.lineno <= holders[-1][0].end_lineno]
        require(len(found) == 1 or len(near) == 1)
        place = "" if len(found) == 1 else " in " + ask.function(*holders[-1])
        said = ask.say(
            "print to [stderr|sys.stderr]{place} [instead of stdout|]",
            "=the print{place} should [go|write] to [stderr|sys.stderr]",
            "make the print{place} write to [stderr|sys.stderr]",
            "=[print|send] the [output|message]{place} to stderr",
            place=place,
        )
    return said, source.with_replaced([(node, text[:-1].rstrip().rstrip(",") + ", file=sys.stderr)")])


@kind(60)
def modern_super(ask):
    """Leaves out the arguments of super()."""
    source = ask.source
    found = [
        n
        for n in source.nodes(ast.Call)
        if isinstance(n.func, ast.Name) and n.func.id == "super" and len(n.args) == 2
    ]
    require(0 < len(found) <= 12)
    several = len(found) > 1
    said = ask.say(
        "[modernize|simplify|update] the super call[s|s|s]" if several else "[modernize|simplify|update] the super call",
        "use super() without arguments [everywhere|]",
        "=super() needs no arguments [in python 3|in Python 3|]",
        "drop the arguments of [the super calls|super()]" if several else "drop the arguments of super()",
        "use the [Python 3|python 3|short|modern] form of super()",
        "[remove|leave out] the [class and self|arguments] in super()",
        "replace the old super() calls [with|by] super()" if several else "replace the old super() call [with|by] super()",
    )
    return said, source.with_replaced([(n, "super()") for n in found])


@kind(60)
def drop_object_base(ask):
    source = ask.source
    found = [
        n
        for n in source.nodes(ast.ClassDef)
        if len(n.bases) == 1 and isinstance(n.bases[0], ast.Name) and n.bases[0].id == "object" and not n.keywords
    ]
    require(found)
    chosen = found if len(found) == 1 or ask.chance(0.7) else [ask.choice(found)]
    lines = list(source.lines)
    for node in chosen:
        at = node.lineno - 1
        new = re.sub(r"\(\s*object\s*\)\s*:", ":", lines[at], count=1)
        require(new != lines[at])
        lines[at] = new
    if len(chosen) == len(found):
        said = ask.say(
            "[remove|drop] the object base class [everywhere|]" if len(found) > 1 else "[remove|drop] the object base class",
            "=no need to inherit from object [in python 3|]",
            "=classes [don't need to|needn't] inherit from object",
            "don't inherit from object",
            "[remove|drop] (object) from the class[es|es]" if len(found) > 1 else "[remove|drop] (object) from the class",
            "[remove|drop] the explicit object base",
        )
    else:
        said = ask.say(
            "{c} should not inherit from object",
            "don't inherit from object in {c}",
            "[remove|drop] the object base [class|] of {c}",
            "[remove|drop] (object) from {c}",
            c=ask.class_(chosen[0].name),
        )
    return said, "\n".join(lines)


@kind(60)
def import_per_line(ask):
    """Gives each module of `import a, b` a line of its own."""
    source = ask.source
    found = [n for n in source.nodes(ast.Import) if len(n.names) > 1 and n.lineno == n.end_lineno]
    require(found and all(source.lines[n.lineno - 1].strip().startswith("import ") for n in found))
    require(not any("#" in source.lines[n.lineno - 1] or ";" in source.lines[n.lineno - 1] for n in found))
    lines = list(source.lines)
    for node in sorted(found, key=lambda n: -n.lineno):
        put = [f"import {a.name} as {a.asname}" if a.asname else f"import {a.name}" for a in node.names]
        lines[node.lineno - 1 : node.lineno] = [" " * node.col_offset + line for line in put]
    return ask.say(
        "=one import per line",
        "put each import on [its own line|a line of its own|a separate line]",
        "split the import[s|s] into one per line",
        "use one import [statement|] per [line|module]",
        "=each import on its own line",
        "=every import should have its own line",
    ), "\n".join(lines)


@kind(20)
def private_attribute(ask):
    """Puts an underscore before an attribute's name."""
    old = an_attribute(ask)
    new = "_" + old
    require(old[0] != "_" and new not in ask.source.names())
    text = with_attribute(ask.source, old, new)
    return (
        ask.say(
            "make {old} private",
            "make the [attribute|field] {old} private",
            "make {self_old} private [with a leading underscore|]",
            "={old} should be private",
            "[prefix|name] the attribute {old} with [an underscore|a leading underscore]",
            "put an underscore [before|in front of] the [attribute|field|] {old}",
            "={self_old} [->|=>] {self_new}",
            "rename {self_old} to {self_new}",
            old=Name(old),
            self_old=Name("self." + old),
            self_new=Name("self." + new),
        ),
        text,
    )


@kind(60)
def built_in_generics(ask):
    """`List[int]` of typing to `list[int]`, and its import goes."""
    source = ask.source
    imports = [
        n
        for n in source.tree.body
        if isinstance(n, ast.ImportFrom) and n.module == "typing" and n.lineno == n.end_lineno and n.level == 0
    ]
    require(len(imports) == 1 and not any(a.asname for a in imports[0].names))
    names = [a.name for a in imports[0].names]
    mine = [name for name in names if name in GENERICS]
    require(mine and "#" not in source.lines[imports[0].lineno - 1] and "(" not in source.lines[imports[0].lineno - 1])
    one = ask.choice(mine) if len(mine) > 1 and ask.chance(0.3) else None
    chosen = [one] if one else mine
    row = imports[0].lineno
    text, count = source.replace_tokens(
        lambda t: t.string.lower() if t.type == tokenize.NAME and t.string in chosen and t.start[0] != row else None
    )
    require(0 < count <= 30)
    for name in chosen:  # no word of a string or comment may mean the type
        require(source.count_of(name) == sum(t.type == tokenize.NAME and t.string == name for t in source.tokens))
    left = [name for name in names if name not in chosen]
    lines = text.split("\n")
    if left:
        lines[row - 1] = "from typing import " + ", ".join(left)
    else:
        del lines[row - 1]
        if row == 1 or not lines[row - 2].strip():
            while row - 1 < len(lines) and not lines[row - 1].strip():
                del lines[row - 1]
    a, b = chosen[0], chosen[0].lower()
    some = [
        "use the built-in [types|generics|type] instead of the ones from typing",
        "use [built-in|builtin] generics instead of typing's",
        "replace the typing generics [with|by] [built-in|the built-in] types",
    ]
    return ask.say(
        *([] if one or len(chosen) > 1 else ["use {b} instead of typing's {a}"]),
        *(some if not one else []),
        *(
            [
                "use {b} instead of {a} [and drop the import|and remove the import|]",
                "replace {a} [with|by] {b} [and drop the import|]",
                "use {b} instead of typing.{plain_a} and [drop|remove] the import",
                "={a} [->|=>] {b}, and [drop|remove] the import",
            ]
            if len(chosen) == 1
            else []
        ),
        a=Name(a),
        b=Name(b),
        plain_a=a,
    ), "\n".join(lines)


@kind(40)
def upper_case_constant(ask):
    """Writes a module's constant in capitals."""
    source = ask.source
    found = []
    for node in source.tree.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            if isinstance(node.value, ast.Constant) and not name.isupper() and name.islower() and len(name) > 2:
                found.append(name)
    stored = [n.id for n in source.nodes(ast.Name) if isinstance(n.ctx, ast.Store)]
    bound = {a.arg for f, _, _ in source.functions() for a in f.args.args + f.args.kwonlyargs}
    found = [n for n in found if stored.count(n) == 1 and n not in bound and not n.startswith("_")]
    old = ask.choice(found)
    new = old.upper()
    require(new not in source.names() and old not in RESERVED and one_meaning(source, "variable", old))
    return ask.say(
        "make {old} [upper case|uppercase|upper-case]",
        "make the [constant|variable] {old} [upper case|uppercase]",
        "write the constant {old} in [capitals|upper case|capital letters]",
        "={old} is a constant, make it [upper case|uppercase]",
        "={old} should be [upper case|uppercase|in capitals]",
        "rename the constant {old} to upper case",
        old=Name(old),
    ), with_name(source, old, new, "variable")


@kind(14)
def rename_local(ask):
    """Renames a variable of one function."""
    function, _, f = ask.drawn_function()
    require(not any(isinstance(n, (ast.Global, ast.Nonlocal)) for n in ast.walk(function)))
    own = sorted(
        {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        - {a.arg for a in function.args.args + function.args.kwonlyargs}
        - RESERVED
    )
    old = ask.choice(own)
    require(not any(isinstance(n, ast.keyword) and n.arg == old for n in ast.walk(function)))
    nested = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
    require(not any(isinstance(n, nested) for n in ast.walk(function) if n is not function))
    uses = [n for n in ast.walk(function) if isinstance(n, ast.Name) and n.id == old]
    require(1 < len(uses) <= 20)
    new = new_name(ask.random, old, ask.source.names(), ask.name_pool)
    text = with_name_in_function(ask.source, function, old, new, "variable")
    loops = [n.target for n in ast.walk(function) if isinstance(n, ast.For) and isinstance(n.target, ast.Name)]
    is_of_loop = any(target.id == old for target in loops)
    thing = f"[the variable|the local variable|{'the loop variable' if is_of_loop else ''}]"
    return ask.say(
        f"rename {thing} {{old}} to {{new}} in {{f}}",
        f"rename {thing} {{old}} in {{f}} to {{new}}",
        f"in {{f}}, rename {thing} {{old}} to {{new}}",
        f"in {{f}}, call {thing} {{old}} {{new}}",
        "in {f}, {old} should be [called|named] {new}",
        "=the variable {old} in {f} should be [called|named] {new}",
        "[call|name] {old} {new} in {f}",
        f=f,
        old=Name(old),
        new=Name(new),
    ), text
