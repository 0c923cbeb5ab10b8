#include "runtime/tools/reasoning_splitter.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace redline::tools {
namespace {

constexpr std::string_view blanks = " \t\r\n";
constexpr std::size_t whitespace_max = 64;  // whitespace before the opening tag

/// The longest suffix of `text` that begins `tag`, in bytes.
std::size_t begun_bytes(std::string_view text, std::string_view tag) {
  for (std::size_t n = std::min(text.size(), tag.size() - 1); n > 0; --n) {
    if (text.ends_with(tag.substr(0, n))) return n;
  }
  return 0;
}

reasoning_splitter::parts joined(const std::vector<channel_reader::part>& from) {
  reasoning_splitter::parts out;
  for (const auto& one : from) (one.is_reasoning ? out.reasoning : out.answer) += one.text;
  return out;
}

}  // namespace

reasoning_splitter::tags reasoning_splitter::tags_of(std::string_view source) {
  static constexpr tags known[] = {{"<think>", "</think>"}, {"[THINK]", "[/THINK]"}};
  for (const auto& one : known) {
    if (source.find(one.close) != std::string_view::npos) return one;
  }
  return {};
}

reasoning_splitter::reasoning_splitter(tags by, beginning where)
    : tags_(by), where_(by.close.empty() ? beginning::answer : where), trims_(where == beginning::in_thought) {}

reasoning_splitter reasoning_splitter::of_channels(std::string_view prompt) {
  reasoning_splitter out;
  out.tags_.close = channel_reader::message_end;
  out.channels_.emplace();
  // A prompt may already have begun the message.
  constexpr std::string_view start = "<|start|>";
  const auto header = prompt.rfind(start);
  if (header != std::string_view::npos) (void)out.channels_->feed(prompt.substr(header));
  return out;
}

reasoning_splitter::parts reasoning_splitter::feed(std::string_view text) {
  if (channels_) return joined(channels_->feed(text));
  parts out;
  held_ += text;
  if (where_ == beginning::either) {
    const auto first = held_.find_first_not_of(blanks);
    if (first == std::string::npos && held_.size() <= whitespace_max) return out;
    const auto rest = first <= whitespace_max ? std::string_view(held_).substr(first) : std::string_view(held_);
    if (rest.size() < tags_.open.size() && tags_.open.starts_with(rest)) return out;
    if (rest.starts_with(tags_.open)) {
      held_.erase(0, first + tags_.open.size());
      where_ = beginning::in_thought;
      trims_ = true;
    } else {
      where_ = beginning::answer;
    }
  }
  if (where_ == beginning::in_thought) {
    if (trims_) held_.erase(0, std::min(held_.find_first_not_of(blanks), held_.size()));
    trims_ = trims_ && held_.empty();
    const auto close = held_.find(tags_.close);
    const std::size_t shown = close == std::string::npos ? held_.size() - begun_bytes(held_, tags_.close) : close;
    out.reasoning = held_.substr(0, shown);
    if (close == std::string::npos) {
      held_.erase(0, shown);
      return out;
    }
    held_.erase(0, close + tags_.close.size());
    where_ = beginning::answer;
    trims_ = true;
  }
  if (trims_) held_.erase(0, std::min(held_.find_first_not_of(blanks), held_.size()));
  trims_ = trims_ && held_.empty();
  out.answer = std::exchange(held_, {});
  return out;
}

reasoning_splitter::parts reasoning_splitter::finish() {
  if (channels_) return joined(channels_->finish());
  std::string rest = std::exchange(held_, {});
  if (where_ == beginning::in_thought) return {std::move(rest), {}};
  return {{}, std::move(rest)};
}

}  // namespace redline::tools
