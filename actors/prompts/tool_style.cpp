#include "actors/prompts/tool_style.hpp"

#include <string>
#include <string_view>
#include <utility>

#include "runtime/base/strict_json.hpp"

namespace redline::actors {
namespace {

using json = nlohmann::ordered_json;

constexpr std::string_view probe_tool = "redline_probe_tool";
constexpr std::string_view probe_argument = "redline_probe_argument";
constexpr std::string_view probe_text = "redline probe text";

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

constexpr std::string_view other_tool = "redline_other_tool";
constexpr std::string_view other_argument = "redline_other_argument";
constexpr std::string_view probe_thought = "redline probe thought";

tools::tool_set set_of(std::string_view name, std::string_view argument) {
  tools::tool one{.name = std::string(name), .description = "A probe."};
  one.parameters = {{"type", "object"},
                    {"properties", {{argument, {{"type", "string"}, {"description", "A text."}}}}},
                    {"required", {argument}}};
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

/// The call must appear neither as Python prints an object, nor as text that was encoded as JSON once more.
bool is_call_shown(std::string_view text) {
  const std::string argument(probe_argument);
  return has(text, probe_tool) && has(text, argument) && !has(text, "'" + argument) && !has(text, "\\\"" + argument);
}

}  // namespace

tool_style tool_style::of(const jinja::chat_template& chat, const jinja::chat_input& base) {
  tool_style style;
  style.format_ = tools::recognise_format(chat.source());
  const auto render = [&](json messages, const json& tools, bool is_answered = true) {
    jinja::chat_input input = base;
    input.messages = std::move(messages);
    input.add_generation_prompt = is_answered;
    if (!tools.is_null()) input.variables["tools"] = tools;
    const auto text = chat.render(input);
    return text ? *text : std::string();
  };
  const json question = json::array({user_message()});
  style.shows_tools_ = has(render(question, tools_for_template(set_of(probe_tool, probe_argument))), probe_tool);
  if (render(question, nullptr).empty() && !render(question, json::array()).empty()) style.no_tools_ = json::array();

  // Calls come with tools. A definition of the called tool would look like its call, so another tool is defined.
  const json others = tools_for_template(set_of(other_tool, other_argument));
  const auto after_call = [&](const json& calling) {
    return render(json::array({user_message(), calling, result_message()}), others);
  };
  for (const bool as_object : {true, false}) {
    for (const bool as_null : {true, false}) {
      if (style.shows_calls_) continue;
      const auto text = after_call(calling_message(as_null ? json(nullptr) : json(""), as_object));
      if (!is_call_shown(text) || (as_null && has(text, "None"))) continue;
      style.shows_calls_ = true;
      style.wants_object_ = as_object;
      style.wants_null_ = as_null;
    }
  }
  const json nothing = style.wants_null_ ? json(nullptr) : json("");
  if (style.shows_calls_) {
    const auto is_all_shown = [](const std::string& text) { return is_call_shown(text) && has(text, probe_text); };
    const json alone = {{"role", "assistant"}, {"content", probe_text}};
    const json calls = calling_message(nothing, style.wants_object_);
    style.splits_content_ = !is_all_shown(after_call(calling_message(probe_text, style.wants_object_))) &&
                            is_all_shown(render(json::array({user_message(), alone, calls, result_message()}), others));
  } else if (style.format_ != nullptr && style.shows_tools_ && !style.format_->has_elements) {
    const json written = style.spell_calls(calling_message("", false)["tool_calls"]);
    style.writes_calls_ =
        has(after_call({{"role", "assistant"}, {"content", written}}), written.get_ref<const std::string&>());
  }

  // Most templates show thoughts only between calls; some show them at the end of a conversation.
  const auto shows_thoughts = [&](const char* name) {
    json calling = calling_message(nothing, style.wants_object_);
    calling[name] = probe_thought;
    json last = {{"role", "assistant"}, {"content", probe_text}};
    last[name] = probe_thought;
    return (style.shows_calls_ && has(after_call(calling), probe_thought)) ||
           has(render(json::array({user_message(), last}), nullptr, false), probe_thought);
  };
  for (const char* name : {"reasoning_content", "thinking", "reasoning", "thought"}) {
    if (!shows_thoughts(name)) continue;
    style.thoughts_ = name;
    json calling = calling_message(probe_text, style.wants_object_);
    calling[name] = probe_thought;
    style.joins_thoughts_ = style.shows_calls_ && !style.splits_content_ && after_call(calling).empty();
    break;
  }
  return style;
}

std::optional<failure> tool_style::why_no_tools() const {
  if (format_ != nullptr && (shows_tools_ || shows_calls_)) return std::nullopt;
  if (!shows_tools_) {
    return failure{
        errc::invalid_argument,
        "this model's chat template does not support tools: leave 'tools' out, set 'tool_choice' to none, or choose a "
        "model whose template supports them"};
  }
  std::string known;
  for (const auto& f : tools::all_formats()) {
    if (!has(known, f.name)) known += (known.empty() ? "" : ", ") + std::string(f.name);
  }
  return failure{errc::invalid_argument,
                 "this model's chat template supports tools, but writes calls in an unsupported form (supported: " +
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

/// Writes calls in the words of the format, as the model wrote them.
std::string tool_style::spell_calls(const json& calls) const {
  std::string text;
  for (const auto& call : calls) {
    const auto& function = call["function"];
    const bool goes_on = !text.empty() && !format_->next.empty();
    if (goes_on) {
      text += format_->next;
    } else {
      for (const auto part : {format_->begin, format_->before_name}) text += part;
    }
    text += function["name"].get_ref<const std::string&>();
    text += format_->after_name;
    text += function["arguments"].get_ref<const std::string&>();
    text += format_->after_arguments;
  }
  return text + std::string(format_->end);
}

json tool_style::message_with_calls(const json& message) const {
  json out = message;
  if (writes_calls_) {
    const auto& said = message["content"];
    out["content"] = (said.is_string() ? said.get<std::string>() : std::string()) + spell_calls(message["tool_calls"]);
    out.erase("tool_calls");
    return out;
  }
  if (const auto thoughts = out.find(thoughts_);
      joins_thoughts_ && thoughts != out.end() && out["content"].is_string() && !out["content"].empty()) {
    const auto& said = out["content"].get_ref<const std::string&>();
    if (!said.empty()) *thoughts = thoughts->get<std::string>() + "\n\n" + said;
    out["content"] = "";
  }
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
  for (json m : messages) {
    if (auto thoughts = m.find("reasoning_content"); thoughts != m.end() && thoughts_ != "reasoning_content") {
      m[thoughts_] = std::move(*thoughts);
      m.erase("reasoning_content");
    }
    if (!m.contains("tool_calls")) {
      out.push_back(m);
      if (auto id = out.back().find("tool_call_id");
          id != out.back().end() && format_ != nullptr && format_->has_short_ids)
        *id = tools::shorten_call_id(id->get_ref<const std::string&>());
      continue;
    }
    if (!shows_calls_ && !writes_calls_) {
      return failure{
          errc::invalid_argument,
          "this model's chat template does not show the calls of earlier messages: leave 'tool_calls' out, or "
          "choose a model whose template supports tools"};
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
