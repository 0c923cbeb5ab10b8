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

}  // namespace

tool_reader::tool_reader(std::shared_ptr<const tool_automaton> rules)
    : rules_(std::move(rules)), state_(rules_->begin()) {
  if (rules_->format().has_channels) channels_.emplace();
}

std::vector<answer_part> tool_reader::feed(std::string_view text) {
  for (const char c : text) take(c);
  return std::exchange(out_, {});
}

std::vector<answer_part> tool_reader::finish() {
  // A call that never got its name leaves its markup, and a cut-off element the bytes that were not its end.
  if (!in_call_) say(std::exchange(held_, {}));
  for (const char c : std::exchange(value_, {})) add_escaped(c);
  if (channels_) add_channels(channels_->finish());
  if (!after_call_) add(kind::text, std::exchange(whitespace_, {}));
  return std::exchange(out_, {});
}

void tool_reader::take(char byte) {
  if (is_broken_) return say({&byte, 1});
  const phase before = tool_automaton::phase_of(state_);
  const bool goes_on = rules_->advance(state_, static_cast<std::uint8_t>(byte));
  const phase now = tool_automaton::phase_of(state_);
  if (!goes_on) {
    is_broken_ = true;
    in_call_ = false;
    say(std::exchange(held_, {}));
    return say({&byte, 1});
  }
  if (in_call_) return read_call(before, now, byte);
  if (before == phase::next_call && (now == phase::text || now == phase::done)) return held_.clear();  // the list's end
  held_ += byte;
  switch (now) {
    case phase::text: {
      const std::size_t said = held_.size() - std::min<std::size_t>(tool_automaton::matched(state_), held_.size());
      say(std::string_view(held_).substr(0, said));
      held_.erase(0, said);
      break;
    }
    case phase::bare:
    case phase::bare_name:
    case phase::opening:
    case phase::before_name:
    case phase::next_call:
    case phase::name:
      break;
    default:
      begin_call(rules_->tool_of(state_).name);
      break;
  }
}

void tool_reader::begin_call(const std::string& name) {
  held_.clear();
  whitespace_.clear();
  if (channels_) channels_->drop_header();
  ++calls_;
  in_call_ = true;
  first_element_ = true;
  after_call_ = true;
  add(kind::call, name);
  if (rules_->format().has_elements) add(kind::arguments, "{");
}

/// Reads a byte of a call whose name is complete.
void tool_reader::read_call(phase before, phase now, char byte) {
  const bool is_over = now == phase::text || now == phase::done || now == phase::next_call || now == phase::name;
  switch (before) {
    case phase::arguments:
      add(kind::arguments, {&byte, 1});
      if (now != phase::arguments) add(kind::call_end, {});
      break;
    case phase::element_name:
      if (now == phase::element_name) break;
      if (!std::exchange(first_element_, false)) add(kind::arguments, ", ");
      add(kind::arguments, as_json(rules_->element_of(state_).name) + ": ");
      break;
    case phase::after_element:
      if (now == phase::element_text || now == phase::element_bound) add(kind::arguments, "\"");
      break;
    case phase::element_text:
    case phase::element_bound: {
      value_ += byte;
      const bool is_end = now != before;
      const std::size_t markup = is_end ? tools::element_end.size() : tool_automaton::matched(state_);
      const std::size_t said = value_.size() - std::min(markup, value_.size());
      for (const char c : value_.substr(0, said)) add_escaped(c);
      value_.erase(0, said);
      if (!is_end) break;
      value_.clear();
      add(kind::arguments, "\"");
      break;
    }
    case phase::element_json:
      // A number ends only with the byte after it.
      if (now == phase::element_json || tool_automaton::matched(state_) == 0) add(kind::arguments, {&byte, 1});
      break;
    case phase::next_element:
      if (!is_over) break;
      add(kind::arguments, "}");
      add(kind::call_end, {});
      break;
    default:
      break;
  }
  if (is_over) in_call_ = false;
}

/// Whitespace is kept back until it is clear that no call follows it. Around calls it is dropped.
void tool_reader::say(std::string_view text) {
  if (channels_ && !is_broken_) return add_channels(channels_->feed(text));
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

/// Adds a byte of a text that becomes a JSON string.
void tool_reader::add_escaped(char byte) {
  const auto code = static_cast<unsigned char>(byte);
  if (byte == '"' || byte == '\\') return add(kind::arguments, std::string{'\\', byte});
  if (byte == '\n') return add(kind::arguments, "\\n");
  if (byte == '\t') return add(kind::arguments, "\\t");
  if (byte == '\r') return add(kind::arguments, "\\r");
  if (code >= 0x20) return add(kind::arguments, {&byte, 1});
  constexpr std::string_view digits = "0123456789abcdef";
  add(kind::arguments, std::string("\\u00") + digits[code >> 4] + digits[code & 15]);
}

}  // namespace redline::grammar
