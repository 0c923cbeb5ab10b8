#include "runtime/grammar/tool_reader.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/base/strict_json.hpp"

namespace redline::grammar {
namespace {

using kind = answer_part::kind;

bool is_whitespace(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

std::string as_json(std::string_view text) { return dump_json(nlohmann::ordered_json(text)); }

/// How much of `text` may be the beginning of `end` at its end. The first byte of `end` occurs only once in it.
std::size_t begun(std::string_view text, std::string_view end) {
  const auto at = text.rfind(end.front());
  return at != std::string_view::npos && end.starts_with(text.substr(at)) ? text.size() - at : 0;
}

/// What a text is that should become `before`, a name of the list, which is sorted, and `after`.
template<class Named>
struct named_text {
  bool fits = false;
  const Named* whole = nullptr;  // if it is complete
};
template<class Named>
named_text<Named> find_name(std::string_view text, std::string_view before, const std::vector<Named>& all,
                            std::string_view after) {
  if (text.size() <= before.size()) return {before.starts_with(text)};
  if (!text.starts_with(before)) return {};
  text.remove_prefix(before.size());
  const auto split = std::min(text.find(after.front()), text.size());
  const auto name = text.substr(0, split);
  const auto at = std::ranges::lower_bound(all, name, {}, &Named::name);
  if (split == text.size()) return {at != all.end() && at->name.starts_with(name)};
  if (at == all.end() || at->name != name || !after.starts_with(text.substr(split))) return {};
  return {true, text.size() - split == after.size() ? &*at : nullptr};
}

}  // namespace

tool_reader::tool_reader(std::shared_ptr<const tool_automaton> rules) : rules_(std::move(rules)) {
  if (!rules_->format().bare_begin.empty()) at_ = region::bare;
  if (rules_->format().has_channels) channels_.emplace();
}

std::vector<answer_part> tool_reader::feed(std::string_view text) {
  for (const char c : text) take(c);
  return std::exchange(out_, {});
}

std::vector<answer_part> tool_reader::finish() {
  // A call that never got its name leaves its markup, and a cut-off element the bytes that were not its end.
  const bool is_text = at_ == region::bare || at_ == region::text || (at_ == region::header && marked_ > 0);
  if (is_text) say(std::exchange(held_, {}));
  if (at_ == region::value && value_->is_text) add_value(std::exchange(held_, {}));
  if (channels_) add_channels(channels_->finish());
  if (!after_call_) add(kind::text, std::exchange(whitespace_, {}));
  return std::exchange(out_, {});
}

void tool_reader::take(char byte) {
  switch (at_) {
    case region::bare:
    case region::text:
      return take_text(byte);
    case region::header:
      return take_header(byte);
    case region::arguments:
      return take_argument(byte);
    case region::element:
      return take_element(byte);
    case region::value:
      return take_value(byte);
    case region::after_value:
      held_ += byte;
      if (byte != '\n') return give_up();
      held_.clear();
      at_ = region::element;
      return;
    case region::after_call:
      return take_after_call(byte);
    case region::broken:
      return say({&byte, 1});
  }
}

void tool_reader::take_text(char byte) {
  const auto& f = rules_->format();
  held_ += byte;
  const auto begin = at_ == region::bare ? f.bare_begin : f.begin;
  if (held_ == begin) {
    before_name_ = at_ == region::bare ? std::string_view{} : f.before_name;
    marked_ = held_.size();
    at_ = region::header;
    return;
  }
  if (at_ == region::bare && begin.starts_with(held_)) return;
  at_ = region::text;
  const std::size_t said = held_.size() - begun(held_, f.begin);
  say(std::string_view(held_).substr(0, said));
  held_.erase(0, said);
}

void tool_reader::take_header(char byte) {
  const auto& f = rules_->format();
  held_ += byte;
  const auto [fits, whole] =
      find_name(std::string_view(held_).substr(marked_), before_name_, rules_->callable(), f.after_name);
  if (whole != nullptr) return begin_call(*whole);
  if (fits) return;
  if (!f.bare_begin.empty() && held_.starts_with(f.bare_begin)) {  // text that began like a call
    at_ = region::text;
    for (const char c : std::exchange(held_, {})) take_text(c);
    return;
  }
  give_up();
}

void tool_reader::begin_call(const callable_tool& tool) {
  held_.clear();
  whitespace_.clear();
  if (channels_) channels_->drop_header();
  ++calls_;
  tool_ = &tool;
  after_call_ = true;
  add(kind::call, tool.name);
  depth_ = 0;
  in_string_ = is_escaped_ = false;
  is_first_element_ = true;
  at_ = rules_->format().has_elements ? region::element : region::arguments;
  if (at_ == region::element) add(kind::arguments, "{");
}

void tool_reader::end_call() {
  add(kind::call_end, {});
  held_.clear();
  const auto& f = rules_->format();
  const bool is_over = f.has_elements || (f.after_arguments.empty() && f.next.empty());
  at_ = is_over ? region::text : region::after_call;
}

/// What deviates from the format is text, like all that follows.
void tool_reader::give_up() {
  at_ = region::broken;
  say(std::exchange(held_, {}));
}

void tool_reader::take_argument(char byte) {
  if (depth_ == 0 && byte != '{') {
    held_ += byte;
    return give_up();
  }
  add(kind::arguments, {&byte, 1});
  if (in_string_) {
    in_string_ = byte != '"' || is_escaped_;
    is_escaped_ = byte == '\\' && !is_escaped_;
    return;
  }
  in_string_ = byte == '"';
  if (byte == '{' || byte == '[') ++depth_;
  if ((byte == '}' || byte == ']') && --depth_ == 0) end_call();
}

void tool_reader::take_element(char byte) {
  held_ += byte;
  const auto end = rules_->format().after_arguments;
  if (held_ == end) {
    add(kind::arguments, "}");
    return end_call();
  }
  const auto [fits, whole] = find_name(held_, tools::element_begin, tool_->elements, tools::element_after_name);
  if (whole != nullptr) {
    if (!std::exchange(is_first_element_, false)) add(kind::arguments, ", ");
    add(kind::arguments, as_json(whole->name) + (whole->is_text ? ": \"" : ": "));
    value_ = whole;
    at_ = region::value;
    held_.clear();
  } else if (!fits && !end.starts_with(held_)) {
    give_up();
  }
}

void tool_reader::take_value(char byte) {
  held_ += byte;
  const bool is_end = held_.ends_with(tools::element_end);
  const std::size_t markup = is_end ? tools::element_end.size() : begun(held_, tools::element_end);
  add_value(std::string_view(held_).substr(0, held_.size() - markup));
  held_.erase(0, held_.size() - markup);
  if (!is_end) return;
  held_.clear();
  if (value_->is_text) add(kind::arguments, "\"");
  at_ = region::after_value;
}

void tool_reader::take_after_call(char byte) {
  const auto& f = rules_->format();
  held_ += byte;
  const std::string_view held = held_;
  if (!held.starts_with(f.after_arguments)) {
    if (!f.after_arguments.starts_with(held)) give_up();
    return;
  }
  const auto rest = held.substr(f.after_arguments.size());
  if (rest == f.end) {
    held_.clear();
    at_ = region::text;
  } else if (rest == f.next) {
    held_.clear();
    marked_ = 0;
    before_name_ = {};
    at_ = region::header;
  } else if (!f.end.starts_with(rest) && !f.next.starts_with(rest)) {
    give_up();
  }
}

/// Whitespace is kept back until it is clear that no call follows it. Around calls it is dropped.
void tool_reader::say(std::string_view text) {
  if (channels_ && at_ != region::broken) return add_channels(channels_->feed(text));
  for (const char c : text) {
    if (is_whitespace(c)) {
      whitespace_ += c;
      continue;
    }
    if (!std::exchange(after_call_, false)) add(kind::text, whitespace_);
    whitespace_.clear();
    add(kind::text, {&c, 1});
  }
}

void tool_reader::add_channels(const std::vector<tools::channel_reader::part>& parts) {
  for (const auto& part : parts) add(part.is_reasoning ? kind::reasoning : kind::text, part.text);
}

void tool_reader::add(answer_part::kind what, std::string_view text) {
  if (text.empty() && what != kind::call_end) return;
  const bool is_more = !out_.empty() && out_.back().what == what && what != kind::call && what != kind::call_end;
  if (is_more) {
    out_.back().text += text;
  } else {
    out_.push_back({what, std::string(text)});
  }
}

/// Adds what an element has, as JSON.
void tool_reader::add_value(std::string_view text) {
  if (!value_->is_text) return add(kind::arguments, text);
  constexpr std::string_view digits = "0123456789abcdef";
  for (const char byte : text) {
    const auto code = static_cast<unsigned char>(byte);
    if (byte == '"' || byte == '\\')
      add(kind::arguments, std::string{'\\', byte});
    else if (byte == '\n')
      add(kind::arguments, "\\n");
    else if (byte == '\t')
      add(kind::arguments, "\\t");
    else if (byte == '\r')
      add(kind::arguments, "\\r");
    else if (code >= 0x20)
      add(kind::arguments, {&byte, 1});
    else
      add(kind::arguments, std::string("\\u00") + digits[code >> 4] + digits[code & 15]);
  }
}

}  // namespace redline::grammar
