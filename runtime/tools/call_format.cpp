#include "runtime/tools/call_format.hpp"

#include <algorithm>
#include <iterator>

#include "runtime/base/hash.hpp"

namespace redline::tools {
namespace {

constexpr std::size_t short_id_chars = 9;

// More specific formats come first: Qwen3-Coder's templates also contain <tool_call>, new DeepSeek templates everything
// that old ones do except the fence, and new Mistral ones [TOOL_CALLS].
constexpr call_format formats[] = {
    {.name = "qwen3-coder",
     .begin = "<tool_call>",
     .before_name = "\n<function=",
     .after_name = ">\n",
     .after_arguments = "</function>\n</tool_call>",
     .has_elements = true,
     .sign = "<function=",
     .and_sign = "<parameter="},
    {.name = "hermes",
     .begin = "<tool_call>",
     .before_name = "\n{\"name\": \"",
     .after_name = "\", \"arguments\": ",
     .after_arguments = "}\n</tool_call>",
     .sign = "<tool_call>",
     .and_sign = "\"arguments"},
    {.name = "mistral-args",
     .begin = "[TOOL_CALLS]",
     .before_name = "",
     .after_name = "[ARGS]",
     .after_arguments = "",
     .has_short_ids = true,
     .sign = "[TOOL_CALLS]",
     .and_sign = "[ARGS]"},
    {.name = "mistral-blank",
     .begin = "[TOOL_CALLS]",
     .before_name = " [{\"name\": \"",
     .after_name = "\", \"arguments\": ",
     .after_arguments = "}",
     .next = ", {\"name\": \"",
     .end = "]",
     .has_short_ids = true,
     .sign = "[TOOL_CALLS] ["},
    {.name = "mistral",
     .begin = "[TOOL_CALLS]",
     .before_name = "[{\"name\": \"",
     .after_name = "\", \"arguments\": ",
     .after_arguments = "}",
     .next = ", {\"name\": \"",
     .end = "]",
     .has_short_ids = true,
     .sign = "[TOOL_CALLS]"},
    {.name = "harmony",
     .begin = "<|channel|>commentary to=functions.",
     .before_name = "",
     .after_name = " <|constrain|>json<|message|>",
     .after_arguments = "",
     .has_channels = true,
     .ends_answer = true,
     .sign = "<|channel|>",
     .and_sign = "functions."},
    {.name = "deepseek",
     .begin = "<｜tool▁calls▁begin｜>",
     .before_name = "<｜tool▁call▁begin｜>function<｜tool▁sep｜>",
     .after_name = "\n```json\n",
     .after_arguments = "\n```<｜tool▁call▁end｜>",
     .next = "\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>",
     .end = "<｜tool▁calls▁end｜>",
     .sign = "<｜tool▁calls▁begin｜>",
     .and_sign = "```json"},
    {.name = "deepseek-v3.1",
     .begin = "<｜tool▁calls▁begin｜>",
     .before_name = "<｜tool▁call▁begin｜>",
     .after_name = "<｜tool▁sep｜>",
     .after_arguments = "<｜tool▁call▁end｜>",
     .next = "<｜tool▁call▁begin｜>",
     .end = "<｜tool▁calls▁end｜>",
     .sign = "<｜tool▁calls▁begin｜>"},
    {.name = "granite",
     .begin = "<|tool_call|>",
     .before_name = "[{\"name\": \"",
     .after_name = "\", \"arguments\": ",
     .after_arguments = "}",
     .next = ", {\"name\": \"",
     .end = "]",
     .sign = "<|tool_call|>",
     .and_sign = "<|start_of_role|>"},
    {.name = "llama3",
     .begin = "<|python_tag|>",
     .before_name = "{\"name\": \"",
     .after_name = "\", \"parameters\": ",
     .after_arguments = "}",
     .bare_begin = "{\"name\": \"",
     .ends_answer = true,
     .sign = "<|python_tag|>"},
    // Llama 3.2's templates do not name a tag.
    {.name = "llama3",
     .begin = "<|python_tag|>",
     .before_name = "{\"name\": \"",
     .after_name = "\", \"parameters\": ",
     .after_arguments = "}",
     .bare_begin = "{\"name\": \"",
     .ends_answer = true,
     .sign = "<|start_header_id|>",
     .and_sign = "\"parameters\": "},
};

bool is_alphanumeric(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

std::string letters_of(std::uint64_t number, std::size_t count) {
  constexpr std::string_view letters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  std::string out;
  for (std::size_t i = 0; i < count; ++i, number /= letters.size()) out += letters[number % letters.size()];
  return out;
}

}  // namespace

std::span<const call_format> all_formats() { return formats; }

const call_format* find_format(std::string_view name) {
  const auto* const at = std::find_if(std::begin(formats), std::end(formats), [&](auto& f) { return f.name == name; });
  return at == std::end(formats) ? nullptr : at;
}

const call_format* recognise_format(std::string_view source) {
  const auto says = [&](std::string_view text) { return source.find(text) != std::string_view::npos; };
  const auto* const at =
      std::find_if(std::begin(formats), std::end(formats), [&](auto& f) { return says(f.sign) && says(f.and_sign); });
  return at == std::end(formats) ? nullptr : at;
}

bool shows_control(const call_format& format, std::string_view control) {
  if (format.has_channels) return true;
  const auto parts = {format.begin,           format.before_name, format.after_name,
                      format.after_arguments, format.next,        format.end};
  return !control.empty() && std::any_of(parts.begin(), parts.end(), [&](std::string_view part) {
    return part.find(control) != std::string_view::npos;
  });
}

std::string make_call_id(std::uint64_t seed, std::uint32_t number, bool short_ids) {
  const auto digest = fnv1a().add(std::to_string(seed)).add(std::uint8_t{0}).add(std::to_string(number)).value();
  return short_ids ? letters_of(digest, short_id_chars)
                   : "call_" + letters_of(digest, 10) + letters_of(seed ^ number, 10);
}

std::string shorten_call_id(std::string_view id) {
  if (id.size() == short_id_chars && std::all_of(id.begin(), id.end(), is_alphanumeric)) return std::string(id);
  return letters_of(fnv1a().add(id).value(), short_id_chars);
}

}  // namespace redline::tools
