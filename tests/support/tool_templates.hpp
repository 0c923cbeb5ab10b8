#pragma once

#include <string_view>

namespace redline::test {

/// Small chat templates, each of which supports tools like a family of models: the variable, the shape of a call in a
/// message, and the family's requirements.
inline constexpr std::string_view hermes_template = R"({%- if tools %}<|im_start|>system
# Tools
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}Write <tool_call>{"name": <name>, "arguments": <object>}</tool_call><|im_end|>
{% endif %}{%- for m in messages %}<|im_start|>{{ m.role if m.role != 'tool' else 'user' }}
{% if m.role == 'tool' %}<tool_response>
{{ m.content }}
</tool_response>{% else %}{{ m.content if m.content else '' }}{% endif %}{% for call in m.tool_calls or [] %}
<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>{% endfor %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %})";

inline constexpr std::string_view elements_template =
    R"({%- for tool in tools or [] %}<function>{{ tool.function.name }}
{% for name, p in tool.function.parameters.properties | items %}{{ name }}: {{ p.type }}
{% endfor %}{% endfor %}{%- for m in messages %}<|im_start|>{{ m.role }}
{{ m.content if m.content else '' }}{% for call in m.tool_calls or [] %}
<tool_call>
<function={{ call.function.name }}>
{% for name, value in call.function.arguments | items %}<parameter={{ name }}>
{{ value if value is string else value | tojson }}
</parameter>
{% endfor %}</function>
</tool_call>{% endfor %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %})";

inline constexpr std::string_view llama_template =
    R"({{ bos_token }}{%- for m in messages %}<|start_header_id|>{{ m.role }}<|end_header_id|>

{% if loop.first and tools %}Answer with {"name": name, "parameters": object}.
{% for tool in tools %}{{ tool | tojson(indent=4) }}

{% endfor %}{% endif %}{% if m.tool_calls is defined %}{% if m.tool_calls | length != 1 %}{{ raise_exception('one call at a time') }}{% endif %}{"name": "{{ m.tool_calls[0].function.name }}", "parameters": {{ m.tool_calls[0].function.arguments | tojson }}}{% else %}{{ m.content }}{% endif %}<|eot_id|>{% endfor %}<|start_header_id|>assistant<|end_header_id|>

)";

inline constexpr std::string_view mistral_template =
    R"({{ bos_token }}{% if tools %}[AVAILABLE_TOOLS]{{ tools | tojson }}[/AVAILABLE_TOOLS]{% endif %}{%- for m in messages %}{% if m.role == 'user' %}[INST]{{ m.content }}[/INST]{% elif m.tool_calls is defined %}[TOOL_CALLS][{% for call in m.tool_calls %}{% if call.id | length != 9 %}{{ raise_exception('ids have length 9') }}{% endif %}{{ (call.function | tojson)[:-1] }}, "id": "{{ call.id }}"}{{ ', ' if not loop.last }}{% endfor %}]{{ eos_token }}{% elif m.role == 'tool' %}{% if m.tool_call_id | length != 9 %}{{ raise_exception('ids have length 9') }}{% endif %}[TOOL_RESULTS]{"content": {{ m.content }}, "call_id": "{{ m.tool_call_id }}"}[/TOOL_RESULTS]{% else %}{{ m.content }}{{ eos_token }}{% endif %}{% endfor %})";

/// Shows no tools; requires arguments as text, and calls in a message without content.
inline constexpr std::string_view deepseek_template =
    R"({{ bos_token }}{% for m in messages %}{% if m.role == 'system' %}{{ m.content }}{% elif m.role == 'user' %}<｜User｜>{{ m.content }}{% elif m.role == 'assistant' and m.content is none %}<｜Assistant｜><｜tool▁calls▁begin｜>{% for call in m.tool_calls %}{{ '<｜tool▁call▁begin｜>' + call.type + '<｜tool▁sep｜>' + call.function.name + '\n```json\n' + call.function.arguments + '\n```<｜tool▁call▁end｜>' }}{% endfor %}<｜tool▁calls▁end｜>{% elif m.role == 'assistant' %}<｜Assistant｜>{{ m.content }}{% else %}<｜tool▁output▁begin｜>{{ m.content }}<｜tool▁output▁end｜>{% endif %}{% endfor %}{% if add_generation_prompt %}<｜Assistant｜>{% endif %})";

/// Like gpt-oss's: names are joined, reasoning has another name and excludes content, and the text of a final answer
/// ends differently at the end of a conversation.
inline constexpr std::string_view harmony_template = R"({%- macro tool_lines(name, list) -%}
{{- "namespace " + name + " {\n" }}
{%- for tool in list %}{% set tool = tool.function %}{{- "// " + tool.description + "\ntype " + tool.name + " = (_: " + (tool.parameters | tojson) + ") => any;\n" }}{% endfor -%}
{{- "}" }}
{%- endmacro -%}
{{- "<|start|>system<|message|>Channels: analysis, commentary, final." }}
{%- if tools -%}{{- "\nCalls go to the commentary channel: 'functions'." }}{%- endif -%}
{{- "<|end|>" }}
{%- if tools %}{{- "<|start|>developer<|message|># Tools\n\n" + tool_lines("functions", tools) + "<|end|>" }}{% endif -%}
{%- set last = namespace(name=none) %}
{%- for m in messages -%}
  {%- if m.role == 'assistant' -%}
    {%- if "content" in m and "<|channel|>final<|message|>" in m.content %}{{ raise_exception('channels stand in no content') }}{% endif %}
    {%- if "tool_calls" in m %}
      {%- set call = m.tool_calls[0].function %}
      {%- if m.content and m.thinking %}{{ raise_exception('content or thinking, not both') }}
      {%- elif m.content %}{{- "<|start|>assistant<|channel|>analysis<|message|>" + m.content + "<|end|>" }}
      {%- elif m.thinking %}{{- "<|start|>assistant<|channel|>analysis<|message|>" + m.thinking + "<|end|>" }}
      {%- endif %}
      {{- "<|start|>assistant to=" }}
      {{- "functions." + call.name + "<|channel|>commentary json<|message|>" }}
      {{- call.arguments | tojson }}
      {{- "<|call|>" }}
      {%- set last.name = call.name %}
    {%- elif loop.last and not add_generation_prompt %}
      {{- "<|start|>assistant<|channel|>final<|message|>" + m.content + "<|return|>" }}
    {%- else %}
      {{- "<|start|>assistant<|channel|>final<|message|>" + m.content + "<|end|>" }}
    {%- endif %}
  {%- elif m.role == 'tool' -%}
    {%- if last.name is none %}{{ raise_exception('a result without a call') }}{% endif %}
    {{- "<|start|>functions." + last.name + " to=assistant<|channel|>commentary<|message|>" + m.content | tojson + "<|end|>" }}
  {%- else -%}
    {{- "<|start|>" + m.role + "<|message|>" + m.content + "<|end|>" }}
  {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}<|start|>assistant{%- endif -%})";

/// Like Hermes 2 Pro's template for tools, which iterates over them without checking whether there are any.
inline constexpr std::string_view hermes_tools_template = R"({{- bos_token }}
{{- '<|im_start|>system
Functions: <tools> ' }}
{%- for tool in tools %}
    {%- if tool.function is defined %}{% set tool = tool.function %}{% endif %}
    {{- '{"type": "function", "function": {"name": "' + tool.name + '", "parameters": ' + (tool.parameters | tojson) + '}}' }}
{%- endfor %}
{{- ' </tools>Return <tool_call>{"name": <name>, "arguments": <object>}</tool_call><|im_end|>
' }}
{%- for m in messages %}
    {%- if m.role == "user" or m.role == "system" or (m.role == "assistant" and m.tool_calls is not defined) %}
        {{- '<|im_start|>' + m.role + '
' + m.content + '<|im_end|>
' }}
    {%- elif m.role == "assistant" %}
        {{- '<|im_start|>' + m.role }}
        {%- for call in m.tool_calls %}
            {%- if call.function is defined %}{% set call = call.function %}{% endif %}
            {{- '
<tool_call>
{"name": "' + call.name + '", "arguments": ' }}
            {%- if call.arguments is string %}{{- call.arguments }}{% else %}{{- call.arguments | tojson }}{% endif %}
            {{- '}
</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>
' }}
    {%- else %}
        {%- if loop.previtem and loop.previtem.role != "tool" %}{{- '<|im_start|>tool
' }}{% endif %}
        {{- '<tool_response>
' + m.content + '
</tool_response>' }}
        {%- if loop.last or loop.nextitem.role != "tool" %}{{- '<|im_end|>' }}{% endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant
' }}{% endif %})";

/// Like Granite 3.3's, which shows tools and results, but only the content of an assistant's message.
inline constexpr std::string_view granite_template =
    R"({%- if tools and not available_tools -%}{%- set available_tools = tools -%}{%- endif -%}
{{- '<|start_of_role|>system<|end_of_role|>You are helpful.' }}
{%- if available_tools %}{{- ' To use a tool, respond with <|tool_call|> and a JSON list.' }}{% endif %}
{{- '<|end_of_text|>
' }}
{%- if available_tools %}
{{- '<|start_of_role|>available_tools<|end_of_role|>' }}
{{- available_tools | tojson(indent=4) }}
{{- '<|end_of_text|>
' }}
{%- endif %}
{%- if 'citations' in controls and documents %}{{- 'cite' }}{% endif %}
{%- for m in messages %}
{{- '<|start_of_role|>' + m['role'] + '<|end_of_role|>' + m['content'] + '<|end_of_text|>
' }}
{%- if loop.last and add_generation_prompt %}{{- '<|start_of_role|>assistant' }}{% if controls %}{{- ' ' + controls | tojson() }}{% endif %}{{- '<|end_of_role|>' }}{% endif %}
{%- endfor %})";

/// Like Qwen 3's: reasoning stands between tags, and in earlier turns only together with calls.
inline constexpr std::string_view thinking_template =
    R"({%- if tools %}{{- '<|im_start|>system\n' }}{% for tool in tools %}{{- tool | tojson + '\n' }}{% endfor %}{{- '<tool_call>{"name": <name>, "arguments": <object>}</tool_call><|im_end|>\n' }}{% endif %}
{%- set ns = namespace(last=messages | length - 1) %}
{%- for m in messages[::-1] %}{% set index = (messages | length - 1) - loop.index0 %}{% if m.role == 'user' and not ns.found %}{% set ns.found = true %}{% set ns.last = index %}{% endif %}{% endfor %}
{%- for m in messages %}
  {%- if m.role == 'assistant' %}
    {%- set content = m.content if m.content is string else '' %}
    {%- set thoughts = m.reasoning_content if m.reasoning_content is string else '' %}
    {{- '<|im_start|>assistant\n' }}
    {%- if loop.index0 > ns.last and (loop.last or thoughts) %}{{- '<think>\n' + thoughts.strip('\n') + '\n</think>\n\n' + content.lstrip('\n') }}{% else %}{{- content }}{% endif %}
    {%- for call in m.tool_calls or [] %}{{- '\n<tool_call>\n{"name": "' + call.function.name + '", "arguments": ' + (call.function.arguments | tojson) + '}\n</tool_call>' }}{% endfor %}
    {{- '<|im_end|>\n' }}
  {%- elif m.role == 'tool' %}{{- '<|im_start|>user\n<tool_response>\n' + m.content + '\n</tool_response><|im_end|>\n' }}
  {%- else %}{{- '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{% endif %})";

}  // namespace redline::test
