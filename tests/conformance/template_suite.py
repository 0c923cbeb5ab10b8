"""Compares how Redline and Jinja2, configured as in the transformers library, render conversations."""

import json
from collections import Counter
from datetime import datetime, timezone

from probe import most_frequent, table

NOW = 1_763_942_400  # templates may show the date

WEATHER = {"type": "function", "function": {
    "name": "get_weather", "description": "Tells the weather of a city.",
    "parameters": {"type": "object", "properties": {
        "city": {"type": "string", "description": "its name"}, "days": {"type": "integer"}}, "required": ["city"]}}}


def call(arguments, number=0):
    return {"id": f"callabcd{number}", "type": "function", "function": {"name": "get_weather", "arguments": arguments}}


def conversations():
    system = {"role": "system", "content": "Answer in one sentence."}
    user = {"role": "user", "content": "What is the weather in Zürich? <b>&\"'"}
    answer = {"role": "assistant", "content": "It rains."}
    asks = {"role": "assistant", "content": "", "tool_calls": [call({"city": "Zürich", "days": 2})]}
    result = {"role": "tool", "name": "get_weather", "tool_call_id": "callabcd0", "content": "{\"rain\": true}"}
    tools = {"tools": [WEATHER]}
    return {
        "a question": ([user], {}),
        "a question, nothing to generate": ([user], {"add_generation_prompt": False}),
        "a system message": ([system, user], {}),
        "two turns": ([system, user, answer, user], {}),
        "ends with the assistant": ([user, answer], {"add_generation_prompt": False}),
        "blanks around": ([{"role": "user", "content": "  \n two \n\n"}], {}),
        "no thinking": ([user], {"variables": {"enable_thinking": False}}),
        "thoughts": ([user, {**answer, "reasoning_content": "Look outside."}, user], {}),
        "tools": ([system, user], {"variables": tools}),
        "tools without a system message": ([user], {"variables": tools}),
        "a call": ([user, asks], {"variables": tools, "add_generation_prompt": False}),
        "a call and its result": ([user, asks, result], {"variables": tools}),
        "a call, its result, an answer": ([system, user, asks, result, answer, user], {"variables": tools}),
        "two calls": ([user, {**asks, "tool_calls": [call({"city": "A"}), call({"city": "B"}, 1)]}, result,
                       {**result, "tool_call_id": "callabcd1"}], {"variables": tools}),
        "a call of text": ([user, {**asks, "tool_calls": [call("{\"city\": \"A\"}")]}, result], {"variables": tools}),
        "a call without content": ([user, {**asks, "content": None}, result], {"variables": tools}),
        "a result without tools": ([user, asks, result], {}),
        "no message": ([], {}),
    }


class Refusal(Exception):
    pass


def oracle():
    import jinja2
    from jinja2.ext import loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    def refuse(message):
        raise Refusal(message)

    def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    world = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
    world.filters["tojson"] = tojson
    world.globals["raise_exception"] = refuse
    world.globals["strftime_now"] = lambda form: datetime.fromtimestamp(NOW, timezone.utc).strftime(form)
    world.policies["json.dumps_kwargs"] = {}

    def render(source, chat):
        try:
            text = world.from_string(source).render(
                messages=chat["messages"], add_generation_prompt=chat["add_generation_prompt"], bos_token="<s>",
                eos_token="</s>", **{"tools": None, "documents": None, **chat["variables"]})
            return {"text": text}
        except Refusal as e:
            return {"why": str(e)}
        except (jinja2.TemplateError, TypeError, ValueError, KeyError, AttributeError, IndexError) as e:
            return {"why": f"{type(e).__name__}: {e}"}

    return render


def find_templates(folder):
    """Returns the folders that contain templates, at any depth."""
    return sorted({path.parent for path in folder.rglob("*.jinja")})


def run_templates(probe, folder):
    render = oracle()
    counts, reasons, others = Counter(), Counter(), []
    templates = sorted(folder.glob("*.jinja"))
    for path in templates:
        source = path.read_text(encoding="utf-8")
        chats = [{"messages": messages, "add_generation_prompt": True, "variables": {}, "bos_token": "<s>",
                  "eos_token": "</s>", "now": NOW, **more} for messages, more in conversations().values()]
        said = probe.ask({"template": source, "chats": chats})
        ours = said.get("texts") or [said] * len(chats)
        for name, chat, mine in zip(conversations(), chats, ours):
            theirs = render(source, chat)
            if "text" in mine and "text" in theirs:
                kind = "equal" if mine["text"] == theirs["text"] else "different"
            elif "text" in mine:
                kind = "only Jinja2 fails"
            else:
                kind = "only Redline fails" if "text" in theirs else "both refuse"
            counts[kind] += 1
            if kind == "only Redline fails":
                reasons[f"{path.stem}: {mine['why'][:100]}"] += 1
            if kind == "different":
                others.append(f"{path.stem}, {name}: {first_difference(mine['text'], theirs['text'])}")
    print(f"## Chat templates in {folder.name}\n")
    kinds = ["equal", "both refuse", "only Jinja2 fails", "different", "only Redline fails"]
    print(table(["templates", "renderings", *kinds],
                [[len(templates), sum(counts.values()), *(counts[kind] for kind in kinds)]]))
    if reasons:
        print("\nOnly Redline fails:\n" + most_frequent(reasons))
    if others:
        print("\nDifferent:\n" + "\n".join(f"- {line}" for line in others[:20]))
    return counts


def count_wrong(probe, folder):
    counts = run_templates(probe, folder)
    return counts["different"] + counts["only Redline fails"]


def first_difference(mine, theirs):
    at = next((i for i, (a, b) in enumerate(zip(mine, theirs)) if a != b), min(len(mine), len(theirs)))
    return f"at {at} {mine[at:at + 30]!r}, Jinja2 has {theirs[at:at + 30]!r}"
