// Any text as a chat template is rendered within the limits, or refused with a reason.
#include <cstdlib>

#include "runtime/jinja/chat_template.hpp"
#include "tests/fuzz/driver.hpp"

using namespace redline;

std::vector<std::string> fuzz::seeds() {
  return {
      std::string(jinja::chatml_template),
      "{% for m in messages %}{{ m['role'] + ': ' + m.content | trim }}{% if not loop.last %}\n{% endif %}{% endfor %}",
      "{% set ns = namespace(n=0) %}{% for i in range(3) %}{% set ns.n = ns.n + i * 2 %}{% endfor %}{{ ns.n }}",
      "{% macro f(a, b=1) %}{{ a ~ b }}{% endmacro %}{{ f('x') }}{{ f(b=2, a=[1, 2.5, none, {'k': true}]) | tojson }}",
      "{{ messages[0]['content'].split('a')[-1].upper()[::-1] }}{{ 'a,b' | replace(',', ';') }}{{ "
      "raise_exception('no') }}",
      "{%- if bos_token is defined and messages | length > 0 -%}{{- bos_token -}}{%- else -%}{{- 1 // 3 ** 2 -}}{%- "
      "endif -%}",
  };
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  jinja::template_limits tight;
  tight.steps_max = 20000;
  const auto parsed = jinja::chat_template::parse({reinterpret_cast<const char*>(data), size}, tight);
  if (!parsed) {
    if (parsed.error().context.empty()) std::abort();
    return 0;
  }
  jinja::chat_input input;
  input.messages = {{{"role", "system"}, {"content", "be brief"}}, {{"role", "user"}, {"content", "a b a"}}};
  const auto rendered = parsed->render(input);
  if (!rendered && rendered.error().context.empty()) std::abort();
  return 0;
}
