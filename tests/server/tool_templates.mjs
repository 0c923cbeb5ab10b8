// Chat templates with tools, for models whose own template has none.

export const hermes = `{%- if tools %}<|im_start|>system
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
{% endif %}`;
