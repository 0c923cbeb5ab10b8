"""Kinds of edits that add, change and remove entries of dictionaries, lists, tuples and sets."""
import ast
import re

from edit_request import kind
from python_source import indent_of, require
from vocabulary import NOUNS
from wordings import Code, Name, Text
from edits_values import new_number, other_value


def containers(source, types):
    """Returns (name, node) of lists, tuples, sets and dictionaries that one assignment gives to a name."""
    found = []
    for node in source.nodes(ast.Assign):
        target = node.targets[0]
        if isinstance(node.value, types) and isinstance(target, ast.Name):
            found.append((target.id, node.value))
    names = [name for name, _ in found]
    return [(name, node) for name, node in found if names.count(name) == 1]


def with_entry(source, node, last, entry):
    """Appends an entry behind the node `last`, on its line or on a line of its own, as the container is written."""
    lines, row = list(source.lines), last.end_lineno - 1
    require(lines[row].isascii() and lines[node.end_lineno - 1].isascii())
    if node.lineno == node.end_lineno:
        line, at = lines[row], last.end_col_offset
        lines[row] = line[:at] + ", " + entry + line[at:]
        require(len(lines[row]) < 140)
        return "\n".join(lines)
    require(re.fullmatch(r"\s*[\])}]+,?;?", lines[node.end_lineno - 1]) and row == node.end_lineno - 2)
    rest = lines[row][last.end_col_offset :]
    require(rest.strip() in ("", ","))
    require(last.lineno == last.end_lineno)
    lines[row] = lines[row][: last.end_col_offset] + ","
    return "\n".join(lines[: row + 1] + [" " * indent_of(lines[row]) + entry + rest.strip()] + lines[row + 1 :])


def without_entry(source, node, items, at):
    """Removes item `at`, a (begin node, end node) pair, with its comma."""
    lines = list(source.lines)
    begin, end = items[at]
    require(begin.lineno == end.end_lineno and lines[begin.lineno - 1].isascii() and len(items) > 1)
    row, line = begin.lineno - 1, lines[begin.lineno - 1]
    if line[: begin.col_offset].strip() == "" and line[end.end_col_offset :].strip() == ",":
        return "\n".join(lines[:row] + lines[row + 1 :])
    require(node.lineno == node.end_lineno)
    if at:
        return "\n".join(
            lines[:row] + [line[: items[at - 1][1].end_col_offset] + line[end.end_col_offset :]] + lines[row + 1 :]
        )
    return "\n".join(lines[:row] + [line[: begin.col_offset] + line[items[1][0].col_offset :]] + lines[row + 1 :])


def some_value(random, like, quote):
    """Returns code for a new value of the same type as the node `like`."""
    if isinstance(like, ast.Constant) and isinstance(like.value, bool):
        return random.choice(["True", "False"])
    if isinstance(like, ast.Constant) and isinstance(like.value, (int, float)):
        return new_number(random, repr(like.value))
    if isinstance(like, ast.Constant) and isinstance(like.value, str):
        return quote + "_".join(random.sample(NOUNS, random.choice([1, 1, 2]))) + quote
    require(isinstance(like, ast.Name))
    return random.choice(NOUNS)


@kind(31)
def add_entry(ask):
    """Adds an entry at the end of a dictionary."""
    source, quote = ask.source, ask.source.quote()
    name, node = ask.choice(containers(source, (ast.Dict,)))
    require(node.keys and all(isinstance(k, ast.Constant) and isinstance(k.value, str) for k in node.keys))
    quote = source.text_of(node.keys[-1])[0]
    require(quote in "\"'")
    key = "_".join(ask.random.sample(NOUNS, ask.random.choice([1, 1, 2])))
    require(key not in [k.value for k in node.keys])
    value = some_value(ask.random, node.values[-1], quote)
    entry = f"{quote}{key}{quote}: {value}"
    return ask.say(
        "add [the entry|an entry|] {entry} to {d}",
        "add [the key|a key|key] {key} with [the value|value|] {value} to {d}",
        "add {key} with the value {value} to {d}",
        "in {d}, add {entry} [at the end|]",
        "add {entry} at the end of {d}",
        "[put|insert] {key} with [the value|value] {value} [into|in] {d}",
        "map {key} to {value} in {d}",
        "={d} should [also have|also contain|get] [the key|] {key} with [the value|value] {value}",
        "={d} needs an entry {entry}",
        "append {entry} to {d}",
        entry=Code(entry),
        key=Text(key) if ask.chance(0.6) else Name(key),
        value=Code(value) if value[0] in "\"'" or ask.chance(0.3) else value,
        d=ask.thing(ask.choice(["dict", "dictionary"]), name),
    ), with_entry(source, node, node.values[-1], entry)


@kind(31)
def change_entry(ask):
    source = ask.source
    name, node = ask.choice(containers(source, (ast.Dict,)))
    key, old = ask.choice(
        [
            (k, v)
            for k, v in zip(node.keys, node.values)
            if isinstance(k, ast.Constant) and isinstance(v, ast.Constant) and isinstance(k.value, str)
        ]
    )
    old_text = source.text_of(old)
    new = other_value(ask.random, old, old_text[0] if old_text[0] in "\"'" else '"')
    require(new and new != old_text and "`" not in old_text)
    return ask.say(
        "change [the value of|] {key} in {d} to {new}",
        "set {key} in {d} to {new}",
        "[make|let] {key} in {d} be {new}",
        "[use|put] {new} for {key} in {d} [instead of {old}|]",
        "[change|update] {d} so that {key} is {new}",
        "set {key} to {new} in {d}",
        "in {d}, [set|change] {key} to {new}",
        "in {d}, change [the value of|] {key} from {old} to {new}",
        "[update|change] [the entry|the value of|] {key} of {d} to {new}",
        "={key} in {d} should be {new} [instead of {old}|]",
        "=in {d}, {key} should be {new}",
        "map {key} to {new} in {d} [instead of {old}|]",
        key=Text(key.value) if ask.chance(0.6) else Name(key.value),
        d=ask.thing(ask.choice(["dict", "dictionary"]), name),
        old=Code(old_text),
        new=Code(new),
    ), source.with_replaced([(old, new)])


@kind(11)
def remove_entry(ask):
    source = ask.source
    name, node = ask.choice(containers(source, (ast.Dict,)))
    require(all(isinstance(k, ast.Constant) and isinstance(k.value, str) for k in node.keys))
    at = ask.random.randrange(max(1, len(node.keys)))
    text = without_entry(source, node, list(zip(node.keys, node.values)), at)
    return (
        ask.say(
            "[remove|delete|drop] [the key|the entry|] {key} from {d}",
            "[remove|delete] [the key|the entry] {key} in {d}",
            "in {d}, [remove|delete|drop] [the entry|the key|] {key}",
            "take {key} out of {d}",
            "={d} should not [contain|have] {key} [any more|anymore|]",
            "=[the key|the entry] {key} [in|of] {d} is no longer needed, remove it",
            key=Text(node.keys[at].value) if ask.chance(0.6) else Name(node.keys[at].value),
            d=ask.thing(ask.choice(["dict", "dictionary"]), name),
        ),
        text,
    )


def list_word(ask, node):
    return ask.random.choice({ast.List: ["list"], ast.Tuple: ["tuple", "list"], ast.Set: ["set"]}[type(node)])


@kind(9.7)
def add_item(ask):
    source = ask.source
    name, node = ask.choice(containers(source, (ast.List, ast.Tuple, ast.Set)))
    require(node.elts)
    value = some_value(ask.random, node.elts[-1], source.text_of(node.elts[-1])[0])
    require(value not in [ast.unparse(e) for e in node.elts] and value[0] not in "rbfuRBF(" or value.isidentifier())
    text = with_entry(source, node, node.elts[-1], value)
    return (
        ask.say(
            "add {value} to {d}",
            "add [the item|the element|the entry|the value|] {value} to {d}",
            "append {value} to {d}",
            "add {value} [at the end of|to the end of] {d}",
            "[put|include] {value} [in|at the end of] {d}",
            "in {d}, add {value} [at the end|]",
            "={d} should also [contain|have|include] {value}",
            "={value} is missing [in|from] {d}, add it",
            "extend {d} with {value}",
            value=Code(value),
            d=ask.thing(list_word(ask, node), name),
        ),
        text,
    )


@kind(10)
def remove_item(ask):
    source = ask.source
    name, node = ask.choice(containers(source, (ast.List, ast.Tuple, ast.Set)))
    require(len(node.elts) > (2 if isinstance(node, ast.Tuple) else 1))
    at = ask.random.randrange(len(node.elts))
    value = source.text_of(node.elts[at])
    require(
        len(value) < 40
        and "`" not in value
        and [ast.unparse(e) for e in node.elts].count(ast.unparse(node.elts[at])) == 1
    )
    return ask.say(
        "[remove|delete|drop] [the item|the element|the entry|] {value} from {d}",
        "[remove|delete|drop] {value} from {d}",
        "take {value} out of {d}",
        "in {d}, [remove|delete|drop] {value}",
        "={d} should not [contain|have|include] {value} [any more|anymore|]",
        "={value} should not be in {d}",
        value=Code(value),
        d=ask.thing(list_word(ask, node), name),
    ), without_entry(source, node, [(e, e) for e in node.elts], at)
