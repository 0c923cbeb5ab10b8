#!/usr/bin/env python3
"""Renders a corpus of chat templates with Jinja2, the way the transformers library does, and writes chat_vectors.json.

    make_chat_vectors.py [chat_vectors.json]

This needs python3-jinja2. Each case is {name, template, input, output} or {name, template, input, error: "parse" |
"refused" | "render"}; the C++ test compares outputs byte for byte and errors by kind. `now` is fixed and in UTC.
"""
import datetime
import json
import os
import sys

import jinja2
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

from chat_templates import FAMILIES

NOW = 1767225600 + 31 * 86400 + 3723  # 2026-02-01 01:02:03 UTC


class Generation(Extension):
    """{% generation %}: renders its body in a scope of its own."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_pass"), [], [], body).set_lineno(line)

    def _pass(self, caller):
        return caller()


class Refused(Exception):
    pass


def environment():
    def raise_exception(message):
        raise Refused(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    def strftime_now(format):
        return datetime.datetime.fromtimestamp(NOW, datetime.timezone.utc).strftime(format)

    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = strftime_now
    return env


def render(template, given):
    env = environment()
    try:
        compiled = env.from_string(template)
    except jinja2.TemplateSyntaxError as why:
        # Jinja2 resolves names of unconditional filters and tests at compile time; Redline does it at render time.
        unknown = isinstance(why, jinja2.TemplateAssertionError) and str(why).startswith(("No filter", "No test"))
        return {"error": "render" if unknown else "parse"}
    values = {"messages": given.get("messages", []), "tools": None, "documents": None,
              "add_generation_prompt": given.get("add_generation_prompt", False)}
    for token in ("bos_token", "eos_token"):
        if token in given:
            values[token] = given[token]
    values.update(given.get("variables", {}))
    try:
        return {"output": compiled.render(**values)}
    except Refused as refusal:
        return {"error": "refused", "message": str(refusal)}
    except Exception:  # whatever Python raises, a failure to render is one kind of error
        return {"error": "render"}


# ---------------------------------------------------------------------------------------------------------------------
# Whole templates, in the style of the families that they are named after.


TOOLS = [
    {"type": "function", "function": {
        "name": "replace_lines", "description": "Replace lines of a file. Ünïcode & <html> \"quotes\".",
        "parameters": {"type": "object", "properties": {
            "path": {"type": "string", "description": "where"},
            "first": {"type": "integer", "default": 1}, "ratio": {"type": "number"},
            "mode": {"type": "string", "enum": ["a", "b"], "description": ""},
            "lines": {"type": "array", "items": {"type": "string"}, "description": "what"},
            "deep": {"type": "object", "properties": {"x": {"type": ["integer", "null"]}}, "required": ["x"],
                     "additionalProperties": {"type": "number"}}},
            "required": ["path", "lines"]}, "return": {"type": "null"}}},
    {"type": "function", "function": {"name": "noop", "description": "Nothing", "parameters": {
        "type": "object", "properties": {}, "required": []}}},
]

CONVERSATIONS = {
    "one": [{"role": "user", "content": "  Rename `add` to `plus`.\n"}],
    "system": [{"role": "system", "content": " You edit code. "}, {"role": "user", "content": "Hi"}],
    "turns": [{"role": "system", "content": "S"}, {"role": "user", "content": "U1"},
              {"role": "assistant", "content": "<think>\nhm\n</think>\n\nA1"}, {"role": "user", "content": "U2 ü 漢字 🙂"},
              {"role": "assistant", "content": "A2", "reasoning_content": "\nbecause\n"}, {"role": "user", "content": "U3"}],
    "answered": [{"role": "user", "content": "def f():\n\tpass\r\n"}, {"role": "assistant", "content": "```python\n{{ x }}\n```"}],
    "two_users": [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}],
    "tool_use": [{"role": "user", "content": "Do it"},
                 {"role": "assistant", "content": None, "tool_calls": [
                     {"id": "abcdefghi", "type": "function", "function": {
                         "name": "replace_lines", "arguments": {"path": "a.py", "lines": ["x = 'é'", "y\n"], "first": 3, "ratio": 0.5}}}]},
                 {"role": "tool", "content": "ok", "tool_call_id": "abcdefghi"},
                 {"role": "tool", "content": "{\"more\": 1}", "tool_call_id": "abcdefghi"},
                 {"role": "assistant", "content": "Done"}],
    "parts": [{"role": "system", "content": [{"type": "text", "text": "Sys"}]},
              {"role": "user", "content": [{"type": "text", "text": " look "}, {"type": "image"}]}],
    "empty": [],
}

SETTINGS = [
    {"add_generation_prompt": True, "bos_token": "<s>", "eos_token": "</s>"},
    {"add_generation_prompt": False, "bos_token": "<|begin|>", "eos_token": "<|end|>",
     "variables": {"tools": TOOLS, "enable_thinking": False, "builtin_tools": ["brave_search", "code_interpreter", "replace_lines"]}},
    {"add_generation_prompt": True, "bos_token": "<s>", "eos_token": "</s>",
     "variables": {"tools": TOOLS, "tools_in_user_message": False, "date_string": "1 Jan 2030", "enable_thinking": True}},
    {"add_generation_prompt": True},
]

# ---------------------------------------------------------------------------------------------------------------------
# Small templates with one feature each. They see these variables.

SMALL = {
    "name": "World", "text": "  Hello, wörld!  ", "empty": "", "zero": 0, "one": 1, "neg": -7, "pi": 3.14159, "big": 1e20,
    "small": 1.5e-7, "yes": True, "no": False, "nothing": None, "words": ["b", "A", "c", "a"], "numbers": [3, 1, 2, 10],
    "nested": [[1, 2], [3, 4]], "user": {"name": "Ann", "age": 30, "tags": ["x", "y"], "items": "shadowed"},
    "people": [{"name": "bob", "age": 25, "ok": True}, {"name": "Al", "age": 30, "ok": False}, {"name": "cy", "age": 25}],
    "mapping": {"z": 1, "a": 2, "M": 3}, "html": "<a href=\"x\">&'</a>", "lines": "one\ntwo\n\nthree\n",
    "unicode": "Straße ÀÉ ñ 漢字 🙂", "floats": [1.0, 2.5, -0.0, 1e16, 123456789.123], "mixed": [1, "1", 1.0, True, None],
    "quotes": "it's \"so\"", "control": "a\tb\\c\x01\x7f\u00a0", "code": "if x:\n    y()\n",
}

EXPRESSIONS = r"""
html | safe
(html | safe) + html
html + (html | safe)
(html | safe) + (html | safe)
(html | safe) ~ html
[html | safe]
(html | safe) is escaped
html is escaped
html | e
html | escape | e
html | safe | e
html | safe | forceescape
5 | e
none | e
(html | e) == '&lt;a href=&#34;x&#34;&gt;&amp;&#39;&lt;/a&gt;'
(html | safe | upper) + '<'
(html | safe | trim) + '<'
(html | safe | title) + '<'
(html | safe | replace('a', 'b')) + '<'
(html | safe | reverse) + '<'
(html | safe | string) + '<'
(html | safe | indent(2)) + '<'
(html | safe)[0] + '<'
(html | safe)[:2] + '<'
(html | safe) * 2 + '<'
(html | safe).upper() + '<'
(html | safe).strip('<') + '<'
(html | safe).replace('a', '<') + '>'
(html | safe).split(' ')[0] + '<'
(html | safe).startswith('<')
(text | tojson | safe) + '"'
('a' | safe) + 'b'
[1, 2, 3.5] | sum
numbers | sum
people | sum(attribute='age')
[[1], [2]] | sum(start=[])
[] | sum
numbers | max
numbers | min
words | max
words | min
words | max(case_sensitive=true)
people | max(attribute='age')
people | min('age')
[] | max is defined
[none] | sort
text | wordcount
'a-b c_d, 12 x' | wordcount
unicode | wordcount
'foo bar baz qux' | truncate(9)
'foo bar baz qux' | truncate(9, true)
'foo bar baz qux' | truncate(11)
'foo bar baz qux' | truncate(11, false, '...', 0)
'foo bar baz qux' | truncate(10, end='<', leeway=0)
('foo bar baz qux' | safe | truncate(8, end='<', leeway=0)) + '<'
'ff' | int(0, 16)
'0x1F' | int(base=16)
'-0b11' | int(0, 2)
'0o17' | int(0, 8)
'zz' | int(7, 36)
'zz' | int(7, 16)
'12' | int(0, 40)
'abc' is lower
'aBc' is lower
'ABC' is upper
'1' is upper
'1' is lower
12 is divisibleby 3
12 is divisibleby(5)
'upper' is filter
'nope' is filter
'defined' is test
'nope' is test
none is filter
words | select('lower') | list
words | select('upper') | list
numbers | reject('divisibleby', 2) | list
name
undefined_thing
nothing
yes
no
one
pi
big
small
floats
words
mixed
user
nested
mapping
quotes
[quotes, control, unicode]
control
(1,)
(1, 2)
()
[]
{}
{'a': 1, 'b': [true, none, 1.5]}
{1: 'x', 'k': {}}
"\x41\u00e9\n\t\\\'\"\101\q"
'a' 'b' "c"
1_000 + 0x1f + 0b11 + 0o17
1e3
1.5e-3
2.50
007 if false else 7
1 + 2 * 3
(1 + 2) * 3
7 / 2
8 / 2
7 // 2
-7 // 2
7 // -2
-7 % 3
7 % -3
7.5 % 2
-7.5 // 2
2 ** 10
2 ** -1
2 ** 0.5
-2 ** 2
2 ** 3 ** 2
1 - 2 - 3
'a' + 'b'
'ab' * 3
[1] * 3
3 * 'ab'
[1, 2] + [3]
(1, 2) + (3,)
'a' ~ 1 ~ none ~ true ~ 1.0 ~ [1]
'a' ~ undefined_thing ~ 'b'
1 ~ 2 + 3
1 == 1.0
1 == true
'1' == 1
none == none
undefined_thing == undefined_other
[1, 2] == [1, 2]
[1, 2] == (1, 2)
{'a': 1} == {'a': 1.0}
{'a': 1, 'b': 2} == {'b': 2, 'a': 1}
1 != 2
1 < 2
2 <= 2
'a' < 'b'
'Z' < 'a'
[1, 2] < [1, 3]
1 < 2 < 3
3 > 2 > 2
1 < 3 > 2 == 2
not 1
not not ''
1 and 2
0 and 2
'' or 'x'
none or false or 0
not true or true
1 in [1, 2]
'a' in 'cat'
'dog' not in 'cat'
'name' in user
30 in user
1 not in (2, 3)
'x' in undefined_thing
not 'x' in ['x']
'a' if yes else 'b'
'a' if no
'a' if no else 'b' if no else 'c'
('a' if no) is defined
words[0]
words[-1]
words[9]
words[9] is defined
words[1:3]
words[::-1]
words[::2]
words[-2:]
words[:-1]
words[5:]
words[3:0:-2]
words[-100:100]
words[100:-100:-1]
words[:]
words[one:]
name[0]
name[-1]
name[1:3]
name[::-1]
unicode[2:6]
unicode[-1]
unicode[::-1]
(1, 2, 3)[1:]
words.0
nested.1.0
nested[1][0]
user.name
user['name']
user["tags"][1]
user.tags.0
user.missing
user['missing']
user.missing is defined
user['items']
user.items is string
user.items() | list
user['missing'] | default('d')
name.missing
nothing.missing
nothing['missing']
mapping.items() | list
mapping.keys() | list
mapping.values() | list
mapping.get('z')
mapping.get('q')
mapping.get('q', 5)
mapping.pop is defined
mapping.update is defined
words.append is defined
text.strip()
text.lstrip()
text.rstrip()
'xxaxx'.strip('x')
'xyaxy'.lstrip('yx')
'axyx'.rstrip('xy')
'\u3000a\u00a0'.strip()
'a,b,,c'.split(',')
'a,b,,c'.split(',', 1)
' a  b c '.split()
' a  b c '.split(none, 1)
' a  b c '.rsplit(none, 1)
' a  b c '.rsplit()
' a  b c '.split(none, 0)
' a  b c '.rsplit(none, 0)
'a,b,c'.rsplit(',', 1)
''.split(',')
''.split()
'a--b--c'.split('--')
lines.splitlines()
'a\r\nb\x0bc\u2028d'.splitlines()
'a\nb'.splitlines(true)
name.upper()
name.lower()
unicode.upper()
unicode.lower()
'hELLO wORLD'.title()
"they're bill's".title()
'hELLO'.capitalize()
name.replace('o', '0')
'aaa'.replace('a', 'b', 2)
'abc'.replace('', '-')
name.startswith('Wo')
name.startswith(('X', 'W'))
name.endswith('d')
name.endswith('x')
name.startswith('or', 1)
', '.join(words)
'-'.join('abc')
'hello'.find('l')
'hello'.find('z')
'hello'.rfind('l')
'wörld'.find('d')
'hello'.count('l')
'prefix_x'.removeprefix('prefix_')
'x_suffix'.removesuffix('_suffix')
'abc' | upper
'ABC' | lower
unicode | upper
'hello world-foo (bar' | title
'hello WORLD' | capitalize
text | trim
'xxaxx' | trim('x')
nothing | trim
undefined_thing | trim
12 | trim
words | length
name | length
unicode | length
mapping | length
undefined_thing | length
mapping | count
words | join
words | join(', ')
numbers | join('-')
people | join(', ', attribute='name')
nested | join('|')
mapping | join(',')
'abc' | join('.')
words | first
words | last
'abc' | first
'abc' | last
[] | first
[] | first is defined
mapping | first
'abc' | list
mapping | list
words | reverse | list
'abc' | reverse
words | sort
words | sort(case_sensitive=true)
words | sort(reverse=true)
numbers | sort
people | sort(attribute='age') | map(attribute='name') | list
people | sort(attribute='age,name') | map(attribute='name') | list
people | sort(attribute='age', reverse=true) | map(attribute='name') | list
words | unique | list
words | unique(case_sensitive=true) | list
people | unique(attribute='age') | map(attribute='name') | list
people | map(attribute='name') | list
people | map(attribute='ok') | list
people | map(attribute='ok', default='?') | list
nested | map(attribute=0) | list
[user] | map(attribute='tags.1') | list
words | map('upper') | list
words | map('upper') | join
numbers | map('string') | list
[1.7, '2'] | map('int') | list
['a-b'] | map('replace', '-', '+') | list
people | selectattr('ok') | map(attribute='name') | list
people | selectattr('ok', 'defined') | map(attribute='name') | list
people | selectattr('age', 'equalto', 25) | map(attribute='name') | list
people | selectattr('age', '>', 25) | list
people | selectattr('name', 'in', ['bob', 'cy']) | map(attribute='name') | list
people | rejectattr('ok') | map(attribute='name') | list
people | rejectattr('ok', 'undefined') | map(attribute='name') | list
numbers | select('even') | list
numbers | select('odd') | list
numbers | select('gt', 2) | list
numbers | reject('equalto', 1) | list
[0, 1, '', 'x'] | select | list
[0, 1, '', 'x'] | reject | list
undefined_thing | default('d')
nothing | default('d')
nothing | default('d', true)
empty | default('d', boolean=true)
undefined_thing | default
undefined_thing | d('e')
'42' | int
'4.9' | int
' 7 ' | int
'x' | int
'x' | int(-1)
'1_0' | int
4.9 | int
-4.9 | int
true | int
nothing | int
'3.5' | float
'x' | float
'x' | float(2.5)
'1e3' | float
'inf' | float
3 | float
12 | string
pi | string
nothing | string
[1] | string
neg | abs
-1.5 | abs
'a b' | replace(' ', '_')
'aaa' | replace('a', 'b', 2)
12 | replace(1, 'x')
html | safe
lines | indent
lines | indent(2, true)
lines | indent(2, first=true, blank=true)
lines | indent('> ')
'x' | indent
mapping | dictsort
mapping | dictsort(true)
mapping | dictsort(by='value')
mapping | dictsort(reverse=true)
mapping | items | list
undefined_thing | items | list
user | tojson
html | tojson
unicode | tojson
unicode | tojson(ensure_ascii=true)
control | tojson
floats | tojson
mixed | tojson
(1, 2) | tojson
{1: 2, none: 3, true: 4, 1.5: 5} | tojson
user | tojson(indent=2)
{'a': [], 'b': {}, 'c': [1, [2]]} | tojson(indent=4)
mapping | tojson(sort_keys=true)
mapping | tojson(separators=(',', ':'))
mapping | tojson(indent=1, sort_keys=true)
[1, 2] | tojson(indent='\t')
[1] | tojson(indent=0)
'x' | tojson
nothing | tojson
name is defined
undefined_thing is defined
undefined_thing is undefined
nothing is none
zero is not none
undefined_thing is none
name is string
one is string
user is mapping
words is mapping
words is iterable
name is iterable
one is iterable
undefined_thing is iterable
words is sequence
user is sequence
one is sequence
one is number
pi is number
yes is number
name is number
one is integer
yes is integer
pi is integer
pi is float
one is float
yes is boolean
one is boolean
yes is true
no is false
one is true
one is eq 1
one is equalto(1)
one is == 1
one is ne 2
one is lt 2
one is le 1
one is gt 2
one is ge 1
one is lessthan 2
one is greaterthan 2
one is in [1, 2]
one is not in [1, 2]
'a' is in 'abc'
2 is even
3 is odd
neg is odd
none is sameas none
words is sameas words
[1] is sameas [1]
range is callable
name is callable
name is defined and name is string
not name is string
name is not string
range(5) | list
range(2, 5) | list
range(5, 0, -2) | list
range(0) | list
range(3) | length
dict(a=1, b='x')
dict([('k', 1)])
dict({'k': 1}, z=2)
namespace(a=1).a
namespace({'b': 2})['b']
namespace().x is defined
strftime_now('%Y-%m-%d %H:%M:%S')
strftime_now('%d %b %Y, %A %j %%')
(1 if yes else 2) | string | length
-1 | abs
- 1 + 2
+one
words | length > 3
words | length - 1
messages is defined
tools is none
loop is defined
''.join(['a', 'b']) | upper | lower | title
user.tags | first | upper
[words, numbers] | map('first') | list
{'a': {'b': {'c': 1}}}.a.b.c
[[1, 2], [3]][1][0] + 1
dict(user)['name']
user.get('tags')[0]
(words | sort)[0]
words[words | length - 1]
'a\
b'
{'x': 1}['x']
{'x': 1}.x
"{{ not code }}"
"%}"
['a', 'b',]
{'a': 1,}
1 if 2 > 1 else 3 + 4
not (1 == 2) and 3 == 3
name in ['World'] and 'a' not in 'b'
1.0 + 1
5 // 2.0
true + true
10 % 3.5
0.1 + 0.2
1e22
1e15
1e16
123456789012345678
100000.0
0.0001
0.00001
-0.0
""".strip("\n")

FAILING = r"""
(html | safe) + 1
12 is divisibleby 0
'abc' | truncate(1)
[1, 'a'] | sum
[1, 'a'] | max
1 | nope
1 is nope
words | map('nope') | list
words | select('nope') | list
1 + 'a'
'a' + 1
'a' + none
none + 'a'
undefined_thing + 'a'
undefined_thing.x
undefined_thing['x']
undefined_thing()
user.missing.deeper
name()
name.nope()
words.append(1)
mapping.update({})
mapping.pop('z')
1 / 0
1 % 0
1 // 0
1 < 'a'
none < 1
1 in 5
1 in 'abc'
words['x'] + 'a'
5 | length
nothing | length
5 | first
nothing | join
undefined_thing | tojson
[undefined_thing] | tojson
'a' | abs
undefined_thing | int
5 | dictsort
5 | items | list
raise_exception('no: ' ~ name)
''.join([1])
'abc'.index('z')
{[1]: 2}
range(1000000)
words[::0]
nothing[1:]
'%d' % 'x'
'%s %s' % 'x'
'x' | indent(width=1, nope=2)
words | sort(attribute='nope', nope=1)
5 | map('upper') | list
people | sort | list
namespace(a=1)()
text.strip(1)
text.split('')
'a'.startswith(1)
name.upper.x.y
-'a'
1 | upper(2)
""".strip("\n")

# Each line is name: template. Whitespace matters here.
STATEMENTS = {
    "unreached_filter": "{% if no %}{{ 1 | nope }}{% endif %}x", "unreached_test": "{% if no %}{{ 1 is nope }}{% else %}y{% endif %}",
    "unreached_mapped": "{{ (words | map('nope')) if no else 'z' }}", "reached_filter": "{% if yes %}{{ 1 | nope }}{% endif %}",
    "loop_cycle": "{% for w in words %}{{ loop.cycle('odd', 'even') }}{{ w }}{% endfor %}",
    "joiner": "{% set comma = joiner() %}{% set dash = joiner('-') %}{% for w in words %}{{ comma() }}{{ w }}{{ dash() }}{% endfor %}",
    "safe_in_block": "{% set x %}{{ html | safe }}{% endset %}{{ x + '<' }}", "safe_by_macro": "{% macro m(v) %}{{ v }}{% endmacro %}{{ m(html | safe) + '<' }}",
    "text": "plain text\n", "two_newlines_at_the_end": "x\n\n", "crlf": "a\r\nb\r{% if yes %}\r\nc\r\n{% endif %}\r\nd\r\n",
    "only_newline": "\n", "empty": "", "no_newline": "abc", "lone_braces": "a { b } c {x} %} }} #}", "brace_end": "{",
    "comment": "a{# gone #}b", "comment_lines": "a\n{# gone\nstill #}\nb", "comment_strip": "a  {#- gone -#}  b",
    "comment_indented": "a\n   {# x #}\nb", "comment_plus": "a\n   {#+ x +#}\nb", "comment_empty": "a{##}b{#-#}c{#--#} d",
    "raw": "a{% raw %}{{ x }}{% if %}{# c #}{% endraw %}b", "raw_lines": "a\n{% raw %}\n {{ x }}\n{% endraw %}\nb",
    "raw_strip": "a {%- raw -%} x {%- endraw -%} b", "raw_indented": "  {% raw %}\n  x\n  {% endraw %}\n y",
    "trim_blocks": "{% if yes %}\nA\n{% endif %}\nB\n", "trim_only_one": "{% if yes %}\n\nA\n{% endif %}\n\nB",
    "no_trim_plus": "{% if yes +%}\nA{% endif +%}\nB", "lstrip": "   {% if yes %}\n   A\n   {% endif %}\nB",
    "no_lstrip_plus": "   {%+ if yes %}A{% endif %}", "lstrip_after_text": "x   {% if yes %}A{% endif %}",
    "lstrip_tab": "\t\t{% if yes %}A{% endif %}", "lstrip_after_tag": "{% if yes %}  {% if yes %}A{% endif %}{% endif %}",
    "lstrip_after_print": "{{ one }}  {% if yes %}A{% endif %}", "print_keeps_blanks": "  {{ one }}  \n  {{ one }}\n",
    "strip_left": "a  \n {{- one }} b", "strip_right": "a {{ one -}} \n  b", "strip_both": "a \n {{- one -}} \n b",
    "strip_block": "a \n\n {%- if yes -%} \n\n x \n {%- endif -%} \n b", "strip_unicode": "a\u00a0\u2003{{- one -}}\u3000b",
    "strip_next_line": "{{ one -}}\n\n{{ 2 }}", "minus_then_newline": "{% if yes -%}\n   x\n{%- endif %}\ny",
    "print_minus_number": "{{-1}}|{{ -1 }}", "tag_over_lines": "{% if\n yes\n and one %}A{% endif\n%}B",
    "string_with_newline": "{{ 'a\nb' }}", "strings_with_tags": "{{ '{{ }}' ~ \"{% %}\" }}",
    "if_else": "{% if no %}1{% elif yes %}2{% else %}3{% endif %}", "if_chain": "{% if no %}1{% elif no %}2{% elif zero %}3{% else %}4{% endif %}",
    "if_undefined": "{% if undefined_thing %}1{% else %}2{% endif %}", "if_empty": "{% if empty %}{% endif %}x",
    "if_colon": "{% if yes: %}A{% endif %}", "nested_if": "{% if yes %}{% if no %}a{% else %}b{% endif %}c{% endif %}",
    "for": "{% for w in words %}[{{ w }}]{% endfor %}", "for_else": "{% for w in [] %}x{% else %}none{% endfor %}",
    "for_undefined": "{% for w in undefined_thing %}x{% else %}none{% endfor %}", "for_string": "{% for c in 'aß漢' %}{{ c }}.{% endfor %}",
    "for_dict": "{% for k in mapping %}{{ k }}{% endfor %}", "for_items": "{% for k, v in mapping.items() %}{{ k }}={{ v }};{% endfor %}",
    "for_nested_unpack": "{% for a, (b, c) in [(1, (2, 3)), (4, (5, 6))] %}{{ a }}{{ b }}{{ c }} {% endfor %}",
    "for_tuple": "{% for x in 1, 2, 3 %}{{ x }}{% endfor %}", "for_range": "{% for i in range(3) %}{{ i }}{% endfor %}",
    "for_filter": "{% for n in numbers if n > 1 %}{{ loop.index }}/{{ loop.length }}:{{ n }} {% endfor %}",
    "for_filter_else": "{% for n in numbers if n > 99 %}x{% else %}none{% endfor %}",
    "for_filter_lazy": "{% set ns = namespace(limit=2) %}{% for n in [1, 2, 3, 4] if n <= ns.limit %}{{ n }}{% set ns.limit = 4 %}{% endfor %}",
    "for_filter_peek": "{% set ns = namespace(limit=1) %}{% for n in [1, 2, 3] if n <= ns.limit %}{{ n }}{{ loop.last }}{% set ns.limit = 9 %}{% endfor %}",
    "for_inline_condition": "{% for w in (words if yes else []) %}{{ w }}{% endfor %}",
    "loop_all": "{% for w in words %}{{ loop.index }} {{ loop.index0 }} {{ loop.revindex }} {{ loop.revindex0 }} {{ loop.first }} {{ loop.last }} {{ loop.length }}\n{% endfor %}",
    "loop_neighbours": "{% for n in numbers %}{{ loop.previtem }}<{{ n }}>{{ loop.nextitem }} {% endfor %}",
    "loop_previtem_defined": "{% for n in [1, 2] %}{{ loop.previtem is defined }}{{ loop.nextitem is defined }} {% endfor %}",
    "loop_outer": "{% for a in [1, 2] %}{% set outer = loop %}{% for b in [3, 4] %}{{ outer.index }}{{ loop.index }} {% endfor %}{% endfor %}",
    "loop_after_inner": "{% for a in [1] %}{% for b in [1, 2] %}{% endfor %}{{ loop.length }}{% endfor %}",
    "loop_in_else": "{% for a in [1, 2] %}{% for b in [] %}{% else %}{{ loop.index }}{% endfor %}{% endfor %}",
    "break": "{% for n in numbers %}{% if n == 2 %}{% break %}{% endif %}{{ n }}{% endfor %}",
    "continue": "{% for n in numbers %}{% if n == 1 %}{% continue %}{% endif %}{{ n }}{% endfor %}",
    "continue_else": "{% for n in numbers %}{% if n == 1 %}{% continue %}{% endif %}a{% else %}none{% endfor %}x",
    "break_else": "{% for n in numbers %}{% break %}{% else %}none{% endfor %}x",
    "break_inner": "{% for a in [1, 2] %}{% for b in [1, 2] %}{% if b == 2 %}{% break %}{% endif %}{{ a }}{{ b }} {% endfor %}{% endfor %}",
    "set": "{% set x = 1 %}{{ x }}", "set_tuple": "{% set a, b = 1, 2 %}{{ b }}{{ a }}", "set_makes_tuple": "{% set a = 1, 2 %}{{ a }}",
    "set_in_if": "{% if yes %}{% set x = 1 %}{% endif %}{{ x }}", "set_in_for": "{% set x = 1 %}{% for i in [1, 2] %}{{ x }}{% set x = 5 %}{{ x }}{% endfor %}{{ x }}",
    "set_in_for_if": "{% set x = 0 %}{% for i in [1, 2] %}{% if yes %}{% set x = x + 1 %}{% endif %}{{ x }}{% endfor %}{{ x }}",
    "set_only_in_for": "{% for i in [1] %}{% set y = 1 %}{% endfor %}{{ y is defined }}", "set_input": "{% set name = name ~ '!' %}{{ name }}",
    "set_block": "{% set x %}a{{ one }}b{% endset %}[{{ x }}]", "set_block_filter": "{% set x | upper | trim %} abc {% endset %}[{{ x }}]",
    "set_block_lines": "{% set x %}\n  a\n{% endset %}\n[{{ x }}]", "set_block_scope": "{% set x %}{% set y = 1 %}{% endset %}{{ y is defined }}",
    "set_list": "{% set x = [] %}{% for i in [1, 2] %}{% set x = x + [i] %}{% endfor %}{{ x }}",
    "namespace": "{% set ns = namespace(n=0) %}{% for i in numbers %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }}",
    "namespace_new_attribute": "{% set ns = namespace() %}{% set ns.a = [1] %}{% set ns.a = ns.a + [2] %}{{ ns.a }}{{ ns.b is defined }}",
    "namespace_not": "{% set d = {} %}{% set d.x = 1 %}", "namespace_block": "{% set ns = namespace() %}{% set ns.x %}hi{% endset %}{{ ns.x }}",
    "macro": "{% macro m(a, b='B', c=none) %}{{ a }}{{ b }}{{ c }}|{% endmacro %}{{ m(1) }}{{ m(1, 2) }}{{ m(a=3, c=4) }}{{ m(1, c='c') }}",
    "macro_missing": "{% macro m(a) %}[{{ a }}{{ a is defined }}]{% endmacro %}{{ m() }}", "macro_default_uses_argument": "{% macro m(a, b=a) %}{{ b }}{% endmacro %}{{ m(1) }}{{ m(1, 2) }}",
    "macro_sees_outer": "{% set x = 1 %}{% macro m() %}{{ x }}{{ name }}{% endmacro %}{{ m() }}{% set x = 2 %}{{ m() }}",
    "macro_before_set": "{% macro m() %}{{ x }}{% endmacro %}{% set x = 5 %}{{ m() }}", "macro_local": "{% macro m() %}{% set x = 1 %}{{ x }}{% endmacro %}{{ m() }}{{ x is defined }}",
    "macro_recursive": "{% macro f(n) %}{{ n }}{% if n > 0 %},{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(3) }}",
    "macro_varargs": "{% macro m(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, 3, x=4) }}", "macro_too_many": "{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}",
    "macro_unknown_keyword": "{% macro m(a) %}{% endmacro %}{{ m(b=1) }}", "macro_twice": "{% macro m(a) %}{% endmacro %}{{ m(1, a=1) }}",
    "macro_in_for": "{% for i in [1, 2] %}{% macro m() %}{{ i }}{{ loop.index }}{% endmacro %}{{ m() }}{% endfor %}",
    "macro_output_is_text": "{% macro m() %}1{% endmacro %}{{ m() + '2' }}{{ m() is string }}{{ m() | int + 1 }}", "macro_name": "{% macro m() %}{% endmacro %}{{ m.name }}",
    "macro_spread": "{% macro m(a, b, c=0) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(*[1, 2]) }}{{ m(1, **{'b': 3, 'c': 4}) }}{{ m(*[1], b=2) }}",
    "call": "{% macro m(t) %}<{{ t }}>{{ caller() }}</{{ t }}>{% endmacro %}{% call m('b') %}x{{ one }}{% endcall %}",
    "call_arguments": "{% macro m() %}{% for i in [1, 2] %}{{ caller(i, y=i) }}{% endfor %}{% endmacro %}{% call(x, y) m() %}({{ x }}{{ y }}){% endcall %}",
    "call_missing": "{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}", "call_unused": "{% macro m() %}x{% endmacro %}{% call m() %}y{% endcall %}",
    "call_defined": "{% macro m() %}{{ caller is defined }}{% endmacro %}{{ m() }}{% call m() %}{% endcall %}",
    "filter_block": "{% filter upper %}a{{ name }}b{% endfilter %}", "filter_block_chain": "{% filter trim | replace('a', 'b') %}  aXa  {% endfilter %}",
    "with": "{% with a = 1, b = 2 %}{{ a }}{{ b }}{% endwith %}{{ a is defined }}", "with_empty": "{% with %}{% set z = 1 %}{{ z }}{% endwith %}{{ z is defined }}",
    "with_outer": "{% set a = 1 %}{% with a = a + 1, b = a %}{{ a }}{{ b }}{% endwith %}{{ a }}",
    "generation": "{% for i in [1, 2] %}{% generation %}{{ i }}{% set q = 1 %}{% endgeneration %}{{ q is defined }}{% endfor %}",
    "generation_lines": "{% generation %}\n  x\n{% endgeneration %}\ny", "tuple_print": "{{ 1, 'a' }}",
    "print_empty_tag": "{{ }}", "shadow_range": "{% set range = 5 %}{{ range }}", "shadow_loop_name": "{% for name in [1] %}{{ name }}{% endfor %}{{ name }}",
    "default_in_condition": "{% if (undefined_thing | default(false)) %}a{% else %}b{% endif %}", "raise": "a{{ raise_exception('stop here') }}b",
    "raise_unreached": "{% if no %}{{ raise_exception('x') }}{% endif %}ok", "is_in_if": "{% if name is string and name is not none %}y{% endif %}",
    "long_or": "{% if one == 2 or one == 3 or (one == 1 and name) %}y{% endif %}", "deep_blocks": "{% if yes %}" * 30 + "x" + "{% endif %}" * 30,
    "deep_brackets": "{{ " + "(" * 25 + "1" + ")" * 25 + " }}", "conditional_targets": "{% for m in people if m.ok is defined and m.ok %}{{ m.name }}{% endfor %}",
    "string_accumulate": "{% set ns = namespace(s='') %}{% for w in words %}{% set ns.s = ns.s ~ w %}{% endfor %}{{ ns.s }}",
    "unclosed_if": "{% if yes %}x", "unclosed_print": "{{ one", "unclosed_comment": "a {# b", "unclosed_raw": "{% raw %}x",
    "unclosed_string": "{{ 'abc }}", "stray_end": "{% endif %}", "stray_else": "{% else %}", "mismatched": "{% for x in y %}{% endif %}",
    "unknown_tag": "{% nope %}", "unknown_filter": "{{ 1 | nope }}", 
    "unknown_test": "{{ 1 is nope }}", "bad_bracket": "{{ (1] }}", "extra_bracket": "{{ 1) }}", "bad_operator": "{{ 1 ! 2 }}", "double_operator": "{{ 1 + * 2 }}",
    "keyword_then_positional": "{{ dict(a=1, 2) }}", "set_constant": "{% set true = 1 %}", "set_expression": "{% set 1 = 2 %}", "for_without_in": "{% for x %}{% endfor %}",
    "default_before_plain": "{% macro m(a=1, b) %}{% endmacro %}", "two_tests": "{{ 1 is defined is string }}", "break_outside": "x{{ one }}", "empty_block": "{% %}",
    "set_without_value": "{% set x = %}", "dot_nothing": "{{ name. }}", "pipe_nothing": "{{ name | }}",
}


def cases():
    for family, template in FAMILIES.items():
        for conversation, messages in CONVERSATIONS.items():
            for number, settings in enumerate(SETTINGS):
                if conversation in ("one", "turns", "tool_use") or number == 0:
                    yield f"{family}/{conversation}/{number}", template, {"messages": messages, **settings}
    small = {"messages": CONVERSATIONS["turns"], "variables": SMALL}
    for name, template in STATEMENTS.items():
        yield "statement/" + name, template, small
    expressions = [e for e in EXPRESSIONS.replace("'a\\\nb'\n", "").split("\n") if e]
    for group, listed in (("expression", expressions), ("failing", FAILING.split("\n"))):
        for text in listed:
            yield f"{group}/{text}", "{{ " + text + " }}", small
    yield "expression/line continuation", "{{ 'a\\\nb' }}", small


def main():
    # Inputs that many cases share are stored once, and referred to by their index in `inputs`.
    inputs, out = [], []
    for name, template, given in cases():
        if given not in inputs:
            inputs.append(given)
        # The input goes through JSON, so that both sides start from the same text.
        shared = json.loads(json.dumps(given))
        out.append({"name": name, "template": template, "input": inputs.index(given), **render(template, shared)})
    templates = []
    for case in out:
        if case["template"] not in templates:
            templates.append(case["template"])
        case["template"] = templates.index(case["template"])
    path = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "chat_vectors.json")
    with open(path, "w", encoding="utf-8") as file:
        rows = lambda items: "[\n" + ",\n".join(json.dumps(i, ensure_ascii=False) for i in items) + "\n]"
        file.write(f'{{"jinja2": "{jinja2.__version__}", "now": {NOW}, "inputs": {rows(inputs)},\n'
                   f'"templates": {rows(templates)},\n"cases": {rows(out)}}}\n')
    kinds = {}
    for case in out:
        kinds[case.get("error", "output")] = kinds.get(case.get("error", "output"), 0) + 1
    print(len(out), "cases,", len(templates), "templates:", kinds)


if __name__ == "__main__":
    main()
