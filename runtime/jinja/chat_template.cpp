#include "runtime/jinja/chat_template.hpp"

#include <utility>

#include "runtime/jinja/interpreter.hpp"
#include "runtime/jinja/parser.hpp"

namespace redline::text {
namespace {

failure described(const jinja_error& error, std::uint32_t line) {
  return {error.code, "chat template, line " + std::to_string(line) + ": " + error.what};
}

void define_input(jinja_interpreter& interpreter, const chat_input& input) {
  jinja_budget& budget = interpreter.budget();
  interpreter.define("messages", jinja_value::from_json(budget, input.messages));
  interpreter.define("add_generation_prompt", jinja_value::boolean(input.add_generation_prompt));
  interpreter.define("tools", {});
  interpreter.define("documents", {});
  if (input.bos_token) interpreter.define("bos_token", jinja_value::string(budget, *input.bos_token));
  if (input.eos_token) interpreter.define("eos_token", jinja_value::string(budget, *input.eos_token));
  for (const auto& [name, value] : input.variables.items()) {
    interpreter.define(name, jinja_value::from_json(budget, value));
  }
}

}  // namespace

const std::string_view chatml_template =
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

chat_template::chat_template(std::shared_ptr<const std::string> source, std::shared_ptr<const jinja_program> program,
                             const jinja_limits& limits)
    : source_(std::move(source)), program_(std::move(program)), limits_(limits) {}

result<chat_template> chat_template::parse(std::string source, const jinja_limits& limits) {
  if (source.size() > limits.source_bytes_max) {
    return failure{errc::invalid_template, "chat template: wanted at most " + std::to_string(limits.source_bytes_max) +
                                               " bytes, found " + std::to_string(source.size())};
  }
  try {
    std::shared_ptr<const jinja_program> program = jinja_parse(source);
    return chat_template(std::make_shared<const std::string>(std::move(source)), std::move(program), limits);
  } catch (const jinja_error& error) {
    return described(error, error.line);
  }
}

result<std::string> chat_template::render(const chat_input& input) const {
  if (!input.messages.is_array())
    return failure{errc::invalid_argument, "messages: wanted an array, found something else"};
  if (!input.variables.is_object()) {
    return failure{errc::invalid_argument, "template variables: wanted an object, found something else"};
  }
  jinja_budget budget(limits_);
  jinja_interpreter interpreter(*program_, budget, input.now);
  try {
    define_input(interpreter, input);
    return interpreter.render();
  } catch (const jinja_error& error) {
    if (error.code == errc::invalid_argument) return failure{error.code, "the chat template refuses: " + error.what};
    return described(error, interpreter.line());
  }
}

}  // namespace redline::text
