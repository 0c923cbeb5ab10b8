#include "runtime/jinja/chat_template.hpp"

#include <utility>

#include "runtime/jinja/interpreter.hpp"
#include "runtime/jinja/parser.hpp"

namespace redline::jinja {
namespace {

failure described(const error& e, std::uint32_t line) {
  return {e.code, "chat template, line " + std::to_string(line) + ": " + e.what};
}

void define_input(interpreter& engine, const chat_input& input) {
  render_budget& budget = engine.budget();
  engine.define("messages", value::from_json(budget, input.messages));
  engine.define("add_generation_prompt", value::boolean(input.add_generation_prompt));
  engine.define("tools", {});
  engine.define("documents", {});
  if (input.bos_token) engine.define("bos_token", value::string(budget, *input.bos_token));
  if (input.eos_token) engine.define("eos_token", value::string(budget, *input.eos_token));
  for (const auto& [name, v] : input.variables.items()) {
    engine.define(name, value::from_json(budget, v));
  }
}

}  // namespace

const std::string_view chatml_template =
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

chat_template::chat_template(std::shared_ptr<const std::string> source, std::shared_ptr<const template_program> program,
                             const template_limits& limits)
    : source_(std::move(source)), program_(std::move(program)), limits_(limits) {}

result<chat_template> chat_template::parse(std::string source, const template_limits& limits) {
  if (source.size() > limits.source_bytes_max) {
    return failure{errc::invalid_template, "chat template: expected at most " +
                                               std::to_string(limits.source_bytes_max) + " bytes, found " +
                                               std::to_string(source.size())};
  }
  try {
    std::shared_ptr<const template_program> program = parse_template(source);
    return chat_template(std::make_shared<const std::string>(std::move(source)), std::move(program), limits);
  } catch (const error& e) {
    return described(e, e.line);
  }
}

result<std::string> chat_template::render(const chat_input& input) const {
  if (!input.messages.is_array())
    return failure{errc::invalid_argument, "messages: expected an array, found something else"};
  if (!input.variables.is_object()) {
    return failure{errc::invalid_argument, "template variables: expected an object, found something else"};
  }
  render_budget budget(limits_);
  interpreter engine(*program_, budget, input.now);
  try {
    define_input(engine, input);
    return engine.render();
  } catch (const error& e) {
    if (e.code == errc::invalid_argument)
      return failure{e.code, "the chat template rejected the conversation: " + e.what};
    return described(e, e.line != 0 ? e.line : engine.line());
  }
}

}  // namespace redline::jinja
