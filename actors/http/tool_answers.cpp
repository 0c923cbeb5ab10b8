#include "actors/http/tool_answers.hpp"

#include <string>
#include <utility>
#include <vector>

#include "runtime/base/strict_json.hpp"
#include "runtime/grammar/tool_grammar.hpp"

namespace redline::actors {
namespace {

/// A shorter text takes only a few tokens, so copying it gains nothing.
constexpr std::size_t text_bytes_min = 24;

/// Texts that a call may repeat, and which of them are the value of a member.
struct known_texts {
  std::vector<std::string> all;
  draft::text_lookup::name_indices names;

  void take(const api::json& value) {
    if (value.is_string() && value.get_ref<const std::string&>().size() >= text_bytes_min) {
      all.push_back(value.get<std::string>());
    } else if (value.is_structured()) {
      for (const auto& inner : value) take(inner);
    }
  }
  /// Takes short strings too, because the next call may concern the same file.
  void take_arguments(const api::json& arguments) {
    for (const auto& [name, value] : arguments.items()) {
      if (value.is_structured()) take_arguments(value);
      if (!value.is_string()) continue;
      if (arguments.is_object()) names[name] = all.size();
      all.push_back(value.get<std::string>());
    }
  }
};

}  // namespace

std::optional<api::api_error> check_tools(const served_model& model, const std::optional<tools::tool_set>& offered) {
  const bool are_shown = offered && offered->call != tools::choice::none;
  const auto why = are_shown ? model.prompts->tools().why_no_tools() : std::nullopt;
  if (!why) return std::nullopt;
  return api::bad_field("tools", "'tools' cannot be used: " + why->context + ".", "unsupported_parameter");
}

api::checked<std::optional<std::string>> hold_to_tools(const served_model& model,
                                                       const api::generation_request& asked) {
  if (!asked.calls_tools()) return std::optional<std::string>{};
  if (const auto why = check_tools(model, asked.tools)) return *why;
  grammar::step_count steps;
  auto held_to =
      grammar::tool_constraint(*asked.tools, *model.prompts->tools().format(), steps, model.answers->automata().get());
  if (!held_to) return api::bad_field("tools", held_to.error().context, "invalid_grammar");
  return std::optional(std::move(held_to->text));
}

std::shared_ptr<const output_rules> with_known_texts(std::shared_ptr<const output_rules> rules,
                                                     const api::json& messages) {
  if (!rules || !rules->tools) return rules;
  known_texts texts;
  for (const auto& m : messages) {
    texts.take(m["content"]);
    if (const auto calls = m.find("tool_calls"); calls != m.end()) {
      for (const auto& call : *calls) {
        const auto arguments = parse_json<api::json>(call["function"]["arguments"].get_ref<const std::string&>());
        if (arguments) texts.take_arguments(*arguments);
      }
    }
  }
  auto out = std::make_shared<output_rules>(*rules);
  out->known = std::make_shared<const draft::text_lookup>(texts.all, draft::text_lookup::bytes_default, texts.names);
  return out;
}

}  // namespace redline::actors
