#include "actors/editing/tool_style.hpp"

#include <string>
#include <string_view>
#include <utility>

#include "runtime/json/strict_json.hpp"

namespace redline::actors {
namespace {

using json = nlohmann::ordered_json;

constexpr std::string_view probe_tool = "redline_probe_tool";
constexpr std::string_view probe_argument = "redline_probe_argument";
constexpr std::string_view probe_text = "redline probe text";

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

tools::tool_set probe_set() {
  tools::tool one{.name = std::string(probe_tool), .description = "A probe."};
  one.parameters = {{"type", "object"},
                    {"properties", {{probe_argument, {{"type", "string"}, {"description", "A text."}}}}},
                    {"required", {probe_argument}}};
  return {.all = {std::move(one)}, .allowed = {}};
}

json user_message() { return {{"role", "user"}, {"content", "A question."}}; }

json calling_message(json content, bool as_object) {
  const json arguments = {{probe_argument, "a"}};
  json call = {{"id", "call00001"},
               {"type", "function"},
               {"function", {{"name", probe_tool}, {"arguments", as_object ? arguments : json(arguments.dump())}}}};
  json message = {{"role", "assistant"}, {"content", std::move(content)}};
  message["tool_calls"] = json::array({std::move(call)});
  return message;
}

json result_message() {
  return {{"role", "tool"}, {"tool_call_id", "call00001"}, {"name", probe_tool}, {"content", "A result."}};
}

/// Not as Python would print an object, and not as text that was made JSON once more.
bool is_call_shown(std::string_view text) {
  const std::string argument(probe_argument);
  return has(text, probe_tool) && has(text, argument) && !has(text, "'" + argument) && !has(text, "\\\"" + argument);
}

}  // namespace

tool_style tool_style::of(const jinja::chat_template& chat, const jinja::chat_input& base) {
  tool_style style;
  style.format_ = tools::recognise_format(chat.source());
  const auto render = [&](json messages, bool with_tools) {
    jinja::chat_input input = base;
    input.messages = std::move(messages);
    if (with_tools) input.variables["tools"] = tools_for_template(probe_set());
    const auto text = chat.render(input);
    return text ? *text : std::string();
  };
  style.shows_tools_ = has(render(json::array({user_message()}), true), probe_tool);

  // The definition of the probe's tool would look like a call of it.
  for (const bool as_object : {true, false}) {
    for (const bool as_null : {true, false}) {
      const auto text =
          render(json::array({user_message(), calling_message(as_null ? json(nullptr) : json(""), as_object),
                              result_message()}),
                 false);
      if (!is_call_shown(text) || (as_null && has(text, "None"))) continue;
      style.shows_calls_ = true;
      style.wants_object_ = as_object;
      style.wants_null_ = as_null;
      break;
    }
    if (style.shows_calls_) break;
  }
  if (!style.shows_calls_) return style;
  const auto is_all_shown = [](const std::string& text) { return is_call_shown(text) && has(text, probe_text); };
  const json alone = {{"role", "assistant"}, {"content", probe_text}};
  const json together = calling_message(probe_text, style.wants_object_);
  style.splits_content_ =
      !is_all_shown(render(json::array({user_message(), together, result_message()}), false)) &&
      is_all_shown(
          render(json::array({user_message(), alone,
                              calling_message(style.wants_null_ ? json(nullptr) : json(""), style.wants_object_),
                              result_message()}),
                 false));
  return style;
}

std::optional<failure> tool_style::why_no_tools() const {
  if (format_ != nullptr && (shows_tools_ || shows_calls_)) return std::nullopt;
  if (!shows_tools_) {
    return failure{
        errc::invalid_argument,
        "this model's chat template knows no tools: leave 'tools' out, set 'tool_choice' to none, or choose a "
        "model whose template has them"};
  }
  std::string known;
  for (const auto& f : tools::all_formats()) {
    if (!has(known, f.name)) known += (known.empty() ? "" : ", ") + std::string(f.name);
  }
  return failure{errc::invalid_argument,
                 "this model's chat template has tools, but writes calls in a form that is not known here (known: " +
                     known + "); set 'tool_choice' to none"};
}

json tool_style::tools_for_template(const tools::tool_set& set) {
  json list = json::array();
  for (const auto& t : set.all) {
    json function;
    function["name"] = t.name;
    function["description"] = t.description;
    function["parameters"] =
        t.parameters.is_null() ? json{{"type", "object"}, {"properties", json::object()}} : t.parameters;
    list.push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  return list;
}

std::string tool_style::introduce(const json& tools) const {
  std::string text = "\n\n# Tools\n\nYou may call these functions, given as JSON:\n";
  for (const auto& t : tools) text += "\n" + dump_json(t["function"]);
  text += "\n\nTo call one, write its name and its arguments, a JSON object, in this form and nothing after it:\n\n";
  for (const auto part : {format_->begin, format_->before_name}) text += part;
  text += "NAME";
  text += format_->after_name;
  text += "ARGUMENTS";
  for (const auto part : {format_->after_arguments, format_->end}) text += part;
  return text;
}

json tool_style::message_with_calls(const json& message) const {
  json out = message;
  if (out["content"].is_null() && !wants_null_) out["content"] = "";
  for (auto& call : out["tool_calls"]) {
    if (format_ != nullptr && format_->has_short_ids) {
      call["id"] = tools::shorten_call_id(call["id"].get_ref<const std::string&>());
    }
    auto& arguments = call["function"]["arguments"];
    if (!wants_object_) continue;
    auto object = parse_json<json>(arguments.get_ref<const std::string&>());
    if (object && object->is_object()) arguments = std::move(*object);
  }
  return out;
}

result<json> tool_style::messages_for_template(const json& messages) const {
  json out = json::array();
  for (const auto& m : messages) {
    if (!m.contains("tool_calls")) {
      out.push_back(m);
      if (auto id = out.back().find("tool_call_id");
          id != out.back().end() && format_ != nullptr && format_->has_short_ids)
        *id = tools::shorten_call_id(id->get_ref<const std::string&>());
      continue;
    }
    if (!shows_calls_) {
      return failure{
          errc::invalid_argument,
          "this model's chat template does not show the calls of earlier messages: leave 'tool_calls' out, or "
          "choose a model whose template has tools"};
    }
    const auto& content = m["content"];
    if (splits_content_ && content.is_string() && !content.get_ref<const std::string&>().empty()) {
      out.push_back({{"role", "assistant"}, {"content", content}});
      json calls = m;
      calls["content"] = nullptr;
      out.push_back(message_with_calls(calls));
    } else {
      out.push_back(message_with_calls(m));
    }
  }
  return out;
}

}  // namespace redline::actors
