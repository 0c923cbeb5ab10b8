"""Cases of grammars and schemas with texts in llama.cpp's C++ tests: those of its own engine and of llguidance."""

import json
import re

from probe import table

PIECES = re.compile(r'//[^\n]*|/\*.*?\*/|R"(?P<mark>[^(\s]*)\((?P<raw>.*?)\)(?P=mark)"|"(?P<plain>(?:[^"\\]|\\.)*)"'
                    r'|(?P<word>\w+)|(?P<sign>[^\s\w])', re.DOTALL)
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0"}
KINDS = {"test_grammar": "grammar", "test_schema": "schema"}


def unescaped(plain):
    return re.sub(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]+|.)",
                  lambda m: chr(int(m[1][1:], 16)) if m[1][0] in "ux" and len(m[1]) > 1 else ESCAPES.get(m[1], m[1]), plain)


def tokens_of(source):
    for m in PIECES.finditer(source):
        if m["raw"] is not None:
            yield "text", m["raw"]
        elif m["plain"] is not None:
            yield "text", unescaped(m["plain"])
        elif m["word"] or m["sign"]:
            yield "code", m["word"] or m["sign"]


def read_arguments(tokens):
    """Reads the arguments of a call: texts, None for what is computed, and lists of these."""
    lists, parts, is_computed = [[]], [], False

    def end():
        nonlocal parts, is_computed
        if parts or is_computed:
            lists[-1].append(None if is_computed else "".join(parts))
        parts, is_computed = [], False

    depth = 0
    for kind, text in tokens:
        if kind == "text":
            parts.append(text)
        elif text == "{" and not parts and not is_computed:
            lists.append([])
        elif text == "}" and len(lists) > 1:
            end()
            lists[-2].append(lists.pop())
        elif text == "," and depth == 0:
            end()
        elif text == ")" and depth == 0:
            end()
            return lists[0]
        else:
            depth += {"(": 1, ")": -1}.get(text, 0)
            is_computed = True
    return lists[0]


def cases_of(source):
    """Yields (kind, description, grammar or schema, texts that match, texts that do not)."""
    tokens = tokens_of(source)
    before = ""
    for kind, text in tokens:
        if kind == "code" and text == "(" and before in KINDS:
            arguments = read_arguments(tokens)
            if len(arguments) == 4 and isinstance(arguments[2], list):
                name, body, right, wrong = arguments
                yield KINDS[before], name, body, *([t for t in some if t is not None] for some in (right, wrong))
        before = text if kind == "code" else ""


def find_grammar_cases(folder):
    names = ("test-grammar-integration.cpp", "test-grammar-llguidance.cpp")
    return [f / name for f in [folder / "tests", *folder.glob("*/tests")] for name in names if (f / name).is_file()]


def is_valid(schema, text):
    """Whether a validator accepts the text, which a grammar of another engine may refuse; None if that is unknown."""
    try:
        import jsonschema
        return jsonschema.Draft202012Validator(schema).is_valid(json.loads(text))
    except (ImportError, ValueError):
        return None


def run_grammar_cases(probe, path):
    """Returns how many texts are accepted that must not be."""
    rows, notes, wrong_count = [], [], 0
    counts = {kind: [0] * 6 for kind in KINDS.values()}
    for kind, name, body, right, wrong in cases_of(path.read_text(encoding="utf-8")):
        count = counts[kind]
        count[0] += 1
        if body is None:
            continue
        question = {"grammar": body} if kind == "grammar" else {"schema": json.loads(body)}
        said = probe.ask({**question, "texts": right + wrong})
        if "why" in said:
            notes.append(f"- {name}: refused: {said['why'][:160]}")
            continue
        count[1] += 1
        accepted = said["accepted"][:len(right)]
        count[2] += sum(accepted)
        count[3] += len(right)
        notes += [f"- {name}: does not take {text!r:.80}" for text, taken in zip(right, accepted) if not taken]
        taken = [text for text, is_taken in zip(wrong, said["accepted"][len(right):]) if is_taken]
        valid = [text for text in taken if kind == "schema" and is_valid(question["schema"], text)]
        count[4] += len(taken) - len(valid)
        count[5] += len(wrong) - len(valid)
        notes += [f"- {name}: takes {text!r:.80}" for text in taken if text not in valid]
        wrong_count += len(taken) - len(valid)
    for kind, count in counts.items():
        if count[0]:
            rows.append([kind, count[0], count[1], f"{count[2]} of {count[3]}", f"**{count[4]}** of {count[5]}"])
    print(f"## {path.name}\n")
    print(table(["cases", "number", "compile", "right texts accepted", "wrong texts ACCEPTED"], rows))
    print("\n".join(["", *notes]))
    return wrong_count
