#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/result.hpp"
#include "runtime/jinja/value.hpp"

namespace redline::jinja {

/// The input of a template. Objects keep the order of their keys, because `tojson` shows it.
struct chat_input {
  nlohmann::ordered_json messages = nlohmann::ordered_json::array();  // {role, content, ...} each
  bool add_generation_prompt = true;
  std::optional<std::string> bos_token;  // undefined in the template if the model has none
  std::optional<std::string> eos_token;
  /// Further variables by name, such as tools, documents or enable_thinking; they override the ones above. `tools` and
  /// `documents` are none if absent.
  nlohmann::ordered_json variables = nlohmann::ordered_json::object();
  std::int64_t now = 0;  // seconds since 1970, for strftime_now, which uses UTC
};

/// A chat template: Jinja text from a model file, rendered as the transformers library renders it. Immutable and shared
/// by copies; any number of threads may render. Templates are untrusted: they can access only their input, and every
/// rendering has limits. Parsing and rendering need up to 256 KiB of stack, more than a small fiber has.
class chat_template {
 public:
  /// Fails with errc::invalid_template, line and construct if the source is malformed or not supported.
  static result<chat_template> parse(std::string source, const template_limits& limits = {});

  /// Fails with errc::invalid_argument if the template refuses the conversation (raise_exception), and with
  /// errc::invalid_template if it fails by itself or reaches a limit.
  [[nodiscard]] result<std::string> render(const chat_input& input) const;

  [[nodiscard]] const std::string& source() const { return *source_; }

 private:
  chat_template(std::shared_ptr<const std::string> source, std::shared_ptr<const struct template_program> program,
                const template_limits& limits);

  std::shared_ptr<const std::string> source_;
  std::shared_ptr<const struct template_program> program_;
  template_limits limits_;
};

/// ChatML, for model files without a template.
extern const std::string_view chatml_template;

}  // namespace redline::jinja
