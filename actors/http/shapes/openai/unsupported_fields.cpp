#include "actors/http/shapes/openai/unsupported_fields.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

namespace redline::api {
namespace {

/// Values other than null that ask for nothing.
enum class harmless : std::uint8_t {
  none,
  is_false,
  is_true,
  is_zero,
  is_one,
  is_minus_one,
  is_empty,    // "", [] or {}
  no_tools,    // "none" or "auto", which mean the same without tools
  text_only,   // ["text"]
  usual_tier,  // "auto" or "default"
  is_medium,   // "medium"
};

struct unsupported_field {
  std::string_view name;
  harmless unless;
};

constexpr unsupported_field both_endpoints[] = {
    // OpenAI
    {"modalities", harmless::text_only},
    {"audio", harmless::none},
    {"web_search_options", harmless::none},
    // vLLM, SGLang
    {"stop_regex", harmless::is_empty},
    {"include_stop_str_in_output", harmless::is_false},
    {"no_stop_trim", harmless::is_false},
    {"skip_special_tokens", harmless::is_true},
    {"truncate_prompt_tokens", harmless::none},
    {"use_beam_search", harmless::is_false},
    {"length_penalty", harmless::is_one},
    {"early_stopping", harmless::is_false},
    {"chat_template", harmless::none},
    {"documents", harmless::is_empty},
    {"kv_transfer_params", harmless::none},
    {"vllm_xargs", harmless::is_empty},
    // llama.cpp
    {"post_sampling_probs", harmless::is_false},
    {"mirostat", harmless::is_zero},
    {"typical_p", harmless::is_one},
    {"top_n_sigma", harmless::is_minus_one},
    {"xtc_probability", harmless::is_zero},
    {"dry_multiplier", harmless::is_zero},
    {"dynatemp_range", harmless::is_zero},
    {"lora", harmless::is_empty},
};

constexpr unsupported_field openai_only[] = {
    {"n_probs", harmless::is_zero},  // chats and completions call it logprobs
};

constexpr unsupported_field completions_only[] = {
    {"tools", harmless::is_empty},
    {"tool_choice", harmless::no_tools},
    {"functions", harmless::is_empty},
    {"function_call", harmless::no_tools},
    {"messages", harmless::is_empty},
    {"top_logprobs", harmless::is_zero},
    {"chat_template_kwargs", harmless::is_empty},
    {"add_generation_prompt", harmless::is_true},
    {"continue_final_message", harmless::is_false},
};

constexpr unsupported_field chat_only[] = {
    {"suffix", harmless::is_empty},
    {"echo", harmless::is_false},
    {"prompt", harmless::is_empty},
};

/// Hints. A listed value describes what is done anyway, so it is not reported as ignored.
constexpr unsupported_field hints[] = {
    {"service_tier", harmless::usual_tier},  {"verbosity", harmless::is_medium},
    {"priority", harmless::is_zero},         {"cache_prompt", harmless::is_true},
    {"id_slot", harmless::is_minus_one},     {"t_max_prompt_ms", harmless::is_zero},
    {"t_max_predict_ms", harmless::is_zero},
};

bool is_number(const json& value, double n) { return value.is_number() && value.get<double>() == n; }

bool asks_nothing(const json& value, harmless unless) {
  if (value.is_null()) return true;
  switch (unless) {
    case harmless::none:
      return false;
    case harmless::is_false:
      return value == false;
    case harmless::is_true:
      return value == true;
    case harmless::is_zero:
      return is_number(value, 0);
    case harmless::is_one:
      return is_number(value, 1);
    case harmless::is_minus_one:
      return is_number(value, -1);
    case harmless::is_empty:
      return (value.is_string() && value.get_ref<const std::string&>().empty()) ||
             (value.is_structured() && value.empty());
    case harmless::no_tools:
      return value == "none" || value == "auto";
    case harmless::text_only:
      return value.is_array() && value.size() == 1 && value[0] == "text";
    case harmless::usual_tier:
      return value == "auto" || value == "default";
    case harmless::is_medium:
      return value == "medium";
  }
  return false;
}

template<std::size_t Count>
const unsupported_field* find_in(const unsupported_field (&table)[Count], std::string_view name) {
  const auto* const end = std::end(table);
  const auto* const at = std::find_if(std::begin(table), end, [name](const auto& field) { return field.name == name; });
  return at == end ? nullptr : at;
}

}  // namespace

std::optional<api_error> find_unsupported(const json& body, endpoint from) {
  for (const auto& [key, value] : body.get_ref<const json::object_t&>()) {
    const auto* field = find_in(both_endpoints, key);
    if (!field) field = from == endpoint::chat ? find_in(chat_only, key) : find_in(completions_only, key);
    if (!field && from != endpoint::native) field = find_in(openai_only, key);
    if (!field || asks_nothing(value, field->unless)) continue;
    return bad_field(key, "'" + key + "' is not supported with this value on this endpoint.", "unsupported_parameter");
  }
  return std::nullopt;
}

std::vector<std::string> list_ignored(std::span<const field_reader::named_value> unread) {
  std::vector<std::string> names;
  for (const auto& [name, value] : unread) {
    const unsupported_field* known = nullptr;
    const auto look_in = [&known, key = name](const auto& table) {
      if (known == nullptr) known = find_in(table, key);
    };
    look_in(both_endpoints);
    look_in(openai_only);
    look_in(chat_only);
    look_in(completions_only);
    look_in(hints);
    if (asks_nothing(*value, known != nullptr ? known->unless : harmless::none)) continue;
    if (names.size() == ignored_fields_max) break;
    names.emplace_back(name.substr(0, 64));
  }
  return names;
}

}  // namespace redline::api
