#pragma once

#include <string_view>

namespace redline::test {

/// Small chat templates, each with tools in the way of a family of models: the variable, the shape of a call in a
/// message, and what they insist on.
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

/// Shows no tools; wants arguments as text, and calls in a message without content.
inline constexpr std::string_view deepseek_template =
    R"({{ bos_token }}{% for m in messages %}{% if m.role == 'system' %}{{ m.content }}{% elif m.role == 'user' %}<｜User｜>{{ m.content }}{% elif m.role == 'assistant' and m.content is none %}<｜Assistant｜><｜tool▁calls▁begin｜>{% for call in m.tool_calls %}{{ '<｜tool▁call▁begin｜>' + call.type + '<｜tool▁sep｜>' + call.function.name + '\n```json\n' + call.function.arguments + '\n```<｜tool▁call▁end｜>' }}{% endfor %}<｜tool▁calls▁end｜>{% elif m.role == 'assistant' %}<｜Assistant｜>{{ m.content }}{% else %}<｜tool▁output▁begin｜>{{ m.content }}<｜tool▁output▁end｜>{% endif %}{% endfor %}{% if add_generation_prompt %}<｜Assistant｜>{% endif %})";

inline constexpr std::string_view harmony_template = R"({% if tools %}<|start|>developer<|message|>namespace functions {
{% for tool in tools %}// {{ tool.function.description }}
type {{ tool.function.name }} = (_: {{ tool.function.parameters | tojson }}) => any;
{% endfor %}}<|end|>{% endif %}{% for m in messages %}{% if m.tool_calls %}{% if m.content %}<|start|>assistant<|channel|>analysis<|message|>{{ m.content }}<|end|>{% endif %}{% set call = m.tool_calls[0].function %}<|start|>assistant to={{ "functions." + call.name }}<|channel|>commentary json<|message|>{{ call.arguments | tojson }}<|call|>{% elif m.role == 'tool' %}<|start|>functions.x to=assistant<|channel|>commentary<|message|>{{ m.content | tojson }}<|end|>{% else %}<|start|>{{ m.role }}<|message|>{{ m.content }}<|end|>{% endif %}{% endfor %}<|start|>assistant{# to=functions. #})";

}  // namespace redline::test
