"""Kinds of edits that add functions, parameters, fields, decorators, branches and constants."""
import ast
import re

from edit_request import kind
from python_source import docstring_node, require
from vocabulary import NOUNS, TYPES, VERBS
from wordings import Code, Name
from edits_additions import module_imports


@kind(1.7)
def add_decorator(ask):
    function, _, f = ask.drawn_function(200)
    require(not function.decorator_list)
    decorator = ask.choice(
        [
            "@" + ask.choice(VERBS) + "_" + ask.choice(NOUNS),
            "@cached",
            "@property",
            "@staticmethod",
            "@functools.wraps(func)",
            "@profile",
            "@lru_cache",
            "@functools.lru_cache(maxsize=None)",
            "@classmethod",
            "@login_required",
            "@pytest.mark.slow",
            "@abstractmethod",
            "@override",
        ]
    )
    return ask.say(
        "add the decorator {d} to {f}",
        "add the {d} decorator to {f}",
        "decorate {f} with {d}",
        "[put|add|place] {d} [above|on|on top of] {f}",
        "[add|put] {d} [to|on] {f}",
        "={f} should be decorated with {d}",
        "={f} should have the decorator {d}",
        "={f} needs [a|the] {d} decorator",
        "give {f} the decorator {d}",
        d=Code(decorator) if ask.chance(0.7) else Code(decorator[1:]),
        f=f,
    ), ask.source.with_lines(function.lineno - 1, [" " * function.col_offset + decorator])


@kind(2.3)
def add_function(ask):
    source = ask.source
    a, b = ask.random.sample(NOUNS, 2)
    name = ask.choice(VERBS) + "_" + ask.choice(NOUNS)
    require(name not in source.names())
    arguments = ask.choice([[], [a], [a, b], [a, b], [a, f"{b}=None"]])
    quote = source.quote()
    value = (
        ask.choice([a, f"{a} * 2", f"[{a}]", f"str({a})", f"len({a})", "None"])
        if arguments
        else ask.choice(["None", "42", "[]", "True", f"{quote}{a}{quote}"])
    )
    value = f"{a} + {b}" if arguments == [a, b] and ask.chance(0.6) else value
    body = ask.choice(
        [f"return {value}"] * 5
        + ["pass", "raise NotImplementedError", f"print({a})" if arguments else f"print({quote}{a}{quote})"]
    )
    classes = [
        n
        for n in source.tree.body
        if isinstance(n, ast.ClassDef) and n.body[-1].col_offset == 4 and n.body[-1].lineno > n.lineno
    ]
    returns = body.startswith("return")
    forms = [
        "add a {what} {sig} with the body {body}{where}",
        "[add|append|create|write] [a|a new] {what} {sig} [with the body|whose body is] {body}{where}",
        "[add|append] the {what} {whole}{where}",
        "add [this|the following] {what}{where}: {whole}",
        "={the_file} needs a {what} {sig} with the body {body}",
    ]
    if returns:
        forms += [
            "add a {what} {sig} that returns {value}{where}",
            "[add|create|write] [a|a new] {what} {sig} [that returns|returning|which returns] {value}{where}",
            "={the_file} needs a {what} {sig} that returns {value}",
            "define [a|a new] {what} {sig}{where} that returns {value}",
        ] * 2
    inside = ", ".join(arguments)
    if classes and ask.chance(0.5):
        node = ask.choice(classes)
        full = ", ".join(["self"] + arguments)
        put = ["", f"    def {name}({full}):", f"        {body}"]
        where = ask.choice([" to {c}", " in {c}", " at the end of {c}"]).replace("{c}", ask.class_(node.name))
        said = ask.say(
            *forms,
            what="method",
            sig=Code(f"{name}({full})" if ask.chance(0.6) else f"{name}({inside})"),
            body=Code(body),
            where=where,
            whole=Code(f"def {name}({full}): {body}"),
            the_file=ask.class_(node.name),
            value=Code(value),
        )
        return said, source.with_lines(node.end_lineno, put)
    main = source.tree.body[-1] if source.tree.body else None
    require(not (isinstance(main, ast.If) and "__name__" in source.lines[main.lineno - 1]))
    said = ask.say(
        *forms,
        what="function",
        sig=Code(f"{name}({inside})"),
        body=Code(body),
        where=ask.choice(["", "", " at the end of the file", " at the end", " at the bottom"]),
        whole=Code(f"def {name}({inside}): {body}"),
        the_file="the file",
        value=Code(value),
    )
    return said, source.with_appended([f"def {name}({inside}):", f"    {body}"])


@kind(3.5)
def add_parameter(ask):
    function, _, f = ask.drawn_function(200)
    require(not (function.args.vararg or function.args.kwarg or function.args.kwonlyargs))
    names = [a.arg for a in function.args.args]
    name = ask.choice(
        NOUNS + ["verbose", "timeout", "strict", "debug", "encoding", "retries", "verbose", "timeout", "dry_run"]
    )
    require(name not in names)
    head = re.match(r"(\s*(?:async )?def \w+\()(.*)(\)(?:\s*->\s*.*)?:)$", ask.source.lines[function.lineno - 1])
    require(head)
    required = not function.args.defaults and ask.chance(0.25)
    quote = ask.source.quote()
    value = ask.choice(["None", "False", "True", "0", "1", "10", "30", quote * 2, "()", "3"])
    kind_ = ask.choice(TYPES[:4]) if ask.chance(0.2) else ""
    said = name + (f": {kind_}" if kind_ else "") + ("" if required else f" = {value}" if kind_ else f"={value}")
    line = head[1] + (head[2] + ", " if head[2].strip() else "") + said + head[3]
    forms = [
        "add [a parameter|the parameter|a new parameter|an argument|the argument|a param] {said} to {f}",
        "give {f} [a new|the|a new last] [parameter|argument] {said}",
        "change {f} [to take|so that it takes] [a|the] parameter {said}",
        "={f} should [take|accept|have] [a|the|a new] [parameter|argument] {said}",
        "={f} needs [a|the|a new] [parameter|argument] {said}",
        "add {said} to the [parameters|arguments|signature] of {f}",
        "add {said} as the last [parameter|argument] of {f}",
        "in {f}, add [the|a] [parameter|argument] {said}",
        "add {said} to {f}'s [parameters|arguments|signature]",
        "let {f} take [a|the] [parameter|argument] {said}",
    ]
    if not required and not kind_:
        forms += [
            "add [a parameter|an argument|an optional parameter|an optional argument] {name} [with default|with the default|with default value|that defaults to|defaulting to|with a default of] {value} to {f}",
            "give {f} [a parameter|an optional parameter] {name} that defaults to {value}",
            "={f} should [take|accept] [a parameter|an optional argument] {name}, [default|by default|defaulting to] {value}",
        ] * 2
    return ask.say(*forms, said=Code(said), f=f, name=Name(name), value=value), ask.source.with_lines(
        function.lineno - 1, [line], function.lineno
    )


@kind(2.7)
def return_type(ask):
    function, _, f = ask.drawn_function(300)
    line = ask.source.lines[function.lineno - 1]
    require(function.returns is None and re.match(r"\s*(async )?def .*\):$", line))
    t = ask.choice(TYPES + ["list[str]", "dict[str, int]", "str | None", "Path", "Iterator[str]"])
    return ask.say(
        "annotate the return type of {f} [as|with] {t}",
        "add the return [type|annotation|type hint|type annotation] {t} to {f}",
        "declare that {f} returns {t}",
        "add {arrow} to {f}",
        "make the return [type|annotation] of {f} {t}",
        "give {f} the return [type|type hint|annotation] {t}",
        "={f} should have the return [type|annotation] {t}",
        "annotate {f} as returning {t}",
        "[annotate|declare] {f} to return {t}",
        "add a return type [hint|annotation] to {f}: {t}",
        "=the return type of {f} [is|should be] {t}",
        t=Code(t),
        arrow=Code("-> " + t),
        f=f,
    ), ask.source.with_lines(function.lineno - 1, [line[:-1] + f" -> {t}:"], function.lineno)


@kind(10)
def main_guard(ask):
    """Adds a main guard, or puts the calls at the end of the file under one."""
    source = ask.source
    require("__name__" not in source.text and source.tree.body)
    names = [
        f.name
        for f, _, owner in source.functions()
        if owner is None and f.col_offset == 0 and len(f.args.args) == len(f.args.defaults)
    ]
    last = source.tree.body[-1]
    bare = [n for n in source.tree.body if isinstance(n, ast.Expr) and isinstance(n.value, ast.Call)]
    if isinstance(last, ast.Expr) and bare == [last] and last.lineno == last.end_lineno:
        call = source.lines[last.lineno - 1]
        return ask.say(
            "[put|wrap|move] {call} [under|in|into] {main}",
            "[put|wrap] {call} in {a_guard}",
            "[put|move] [the last line|the call at the end] [under|in|into] {a_guard}",
            "={call} should only run [as a script|when the file is run as a script]",
            "guard {call} with {main}",
            "add a main guard around {call}",
            call=Code(call),
            main=Code('if __name__ == "__main__":'),
            a_guard=ask.choice(["a main guard", "a `__main__` guard", "if __name__ == '__main__'"]),
        ), source.with_lines(last.lineno - 1, ['if __name__ == "__main__":', "    " + call], last.lineno)
    name = ask.choice(["main"] * 3 * ("main" in names) + names)
    call = Code(name + "()")
    return ask.say(
        "add [a main guard|an if __name__ == '__main__' guard|an `if __name__ == \"__main__\":` block|a main block] [that calls|which calls|calling] {call}",
        "add if __name__ == '__main__' [that calls|with a call of|and call] {call}",
        "[call|run] {call} [when the file is run as a script|if the file is run as a script|under a main guard|in a main guard]",
        "={call} should [run|be called] when the file is run as a script",
        "at the end, add a main guard [that calls|calling] {call}",
        call=call,
    ), source.with_appended(['if __name__ == "__main__":', f"    {name}()"])


@kind(7.7)
def add_field(ask):
    """Adds a parameter and the attribute that keeps it, or just an attribute, at the end of `__init__`."""
    source = ask.source
    inits = [(f, owner) for f, _, owner in source.functions() if f.name == "__init__" and owner]
    function, owner = ask.choice(inits)
    require(not (function.args.vararg or function.args.kwarg or function.args.kwonlyargs))
    name = ask.choice(NOUNS + ["verbose", "timeout", "retries", "debug"])
    require(name not in [a.arg for a in function.args.args] and f"self.{name}" not in source.text)
    last = function.body[-1]
    require(isinstance(last, (ast.Assign, ast.Expr, ast.AnnAssign)) and not docstring_node(function) is last)
    require(last.lineno > function.lineno)
    indent, c = " " * last.col_offset, ask.class_(owner.name)
    place = c if len(inits) > 1 else ask.choice([c, "`__init__`", "__init__", ask.name("__init__", "()")])
    quote = source.quote()
    value = ask.choice(["None", "0", "False", "True", "[]", "{}", "1", "10", quote * 2, "set()"])
    lines = list(source.lines)
    if ask.chance(0.4):
        lines[function.end_lineno : function.end_lineno] = [f"{indent}self.{name} = {value}"]
        return ask.say(
            "add {line} [to|at the end of] {init}",
            "add [an attribute|a field|the attribute|the field] {name} [to|in] {c}, [initialized to|initially|set to|starting as] {value}",
            "in {init}, [set|initialize] {attr} to {value}",
            "[initialize|set] {attr} to {value} in {init}",
            "={init} should [set|initialize] {attr} to {value}",
            "give {c} [an attribute|a field] {name} that [starts as|is initially] {value}",
            line=Code(f"self.{name} = {value}"),
            name=Name(name),
            attr=Name("self." + name),
            value=Code(value) if ask.chance(0.3) else value,
            c=c,
            init=ask.choice(["__init__", "`__init__`", "the constructor"]) + ("" if len(inits) == 1 else " of " + c),
        ), "\n".join(lines)
    head = re.match(r"(\s*def __init__\()(.*)(\)(?:\s*->\s*.*)?:)$", lines[function.lineno - 1])
    require(head)
    if function.args.defaults or ask.chance(0.5):
        default = ask.choice(["None", "0", "False", "True", "1", "10", quote * 2])
    else:
        default = ""
    lines[function.end_lineno : function.end_lineno] = [f"{indent}self.{name} = {name}"]
    lines[function.lineno - 1] = (
        head[1] + (head[2] + ", " if head[2].strip() else "") + name + (f"={default}" if default else "") + head[3]
    )
    said = Code(f"{name}={default}") if default and ask.chance(0.5) else None
    tail = (
        ""
        if not default or said
        else ask.choice([f" with default {default}", f", default {default}", f" that defaults to {default}"])
    )
    return ask.say(
        "add [a parameter|a constructor parameter|an argument|a constructor argument] {name}{tail} to {place} and [store it|save it|keep it] as {attr}",
        "add [a parameter|the parameter|an argument] {name}{tail} to {place} and [store|save|keep] it as {attr}",
        "={place} should take {name}{tail} and [store it as|save it in|keep it as] {attr}",
        "let {place} take {name}{tail} and [store|keep] it [as|in] {attr}",
        "give {place} a parameter {name}{tail} and set {attr} to it",
        name=said or Name(name),
        tail=tail,
        place=place,
        attr=Name("self." + name),
    ), "\n".join(lines)


@kind(5.5)
def add_else(ask):
    """Adds an else, or an elif, to the only if of a function."""
    function, _, f = ask.drawn_function()
    found = [n for n in ast.walk(function) if isinstance(n, ast.If)]
    require(len(found) == 1 and not found[0].orelse)
    node = found[0]
    indent, inner = " " * node.col_offset, " " * node.body[0].col_offset
    require(node.body[0].lineno > node.lineno and len(inner) > len(indent))
    a = ask.choice(NOUNS)
    quote = ask.source.quote()
    line = ask.choice(
        [
            "pass",
            "return None",
            "return False",
            "return []",
            f"print({quote}no {a}{quote})",
            f"{a} = None",
            f"{a} = 0",
            f"raise ValueError({quote}no {a}{quote})",
            "return 0",
        ]
    )
    slots = dict(f=f, line=Code(line))
    if ask.chance(0.6):
        return ask.say(
            "add an else [branch|block|] with {line} to the if in {f}",
            "in {f}, add an else [branch|block|] with {line} [to the if|]",
            "add else: {line} to the if [of|in] {f}",
            "=the if in {f} should have an else [branch|] with {line}",
            "give the if in {f} an else [branch|] [with|containing] {line}",
            "add an else to the if [of|in] {f}: {line}",
            **slots,
        ), ask.source.with_lines(node.end_lineno, [indent + "else:", inner + line])
    test = ask.choice(
        [f"{a} is None", f"not {a}", a, f"{a} > {ask.random.randint(0, 20)}", f"{a} == {ask.random.randint(0, 9)}"]
    )
    return ask.say(
        "add an elif [branch|] {test} with {line} to the if in {f}",
        "in {f}, add an elif {test} with {line}",
        "add [the branch|] {whole} to the if in {f}",
        "=the if in {f} should have an elif {test} with {line}",
        "in {f}, after the if, add {whole}",
        test=Code(test),
        whole=Code(f"elif {test}: {line}"),
        **slots,
    ), ask.source.with_lines(node.end_lineno, [indent + f"elif {test}:", inner + line])


@kind(1.4)
def add_constant(ask):
    """Adds a constant behind the imports, or at the top of a file without them."""
    source, imports = ask.source, module_imports(ask.source)
    name = "_".join(ask.random.sample(NOUNS, ask.random.choice([1, 2, 2]))).upper()
    require(imports and name not in source.names() and imports[-1].end_lineno < len(source.lines))
    quote = source.quote()
    value = ask.choice(
        [
            str(ask.random.randint(0, 9999)),
            "True",
            "False",
            "None",
            f"{quote}{ask.choice(NOUNS)}{quote}",
            f"{quote}{ask.choice(NOUNS)}.{ask.choice(['txt', 'json', 'csv'])}{quote}",
            "[]",
            "0.5",
        ]
    )
    at = imports[-1].end_lineno
    return ask.say(
        "add [a|the] constant {name} [with the value|with value|set to] {value} after the imports",
        "add {line} [after|below|right after] the imports",
        "define {line} [after|below] the imports",
        "[below|after] the imports, [add|define|insert] {line}",
        "define [a|the] constant {name} with the value {value} [after|below] the imports",
        name=Name(name),
        value=Code(value) if ask.chance(0.5) else value,
        line=Code(f"{name} = {value}"),
    ), source.with_lines(at, ["", f"{name} = {value}"])
