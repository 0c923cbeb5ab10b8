#include "runtime/tools/channel_reader.hpp"

#include <algorithm>
#include <utility>

namespace redline::tools {
namespace {

constexpr std::string_view message_begin = "<|message|>";
constexpr std::string_view reasoning_channel = "<|channel|>analysis";
constexpr std::string_view ends[] = {channel_reader::message_end, "<|start|>", "<|return|>", "<|call|>"};
constexpr std::size_t header_bytes_max = 256;

constexpr std::size_t longest_end() {
  std::size_t longest = 0;
  for (const std::string_view end : ends) longest = std::max(longest, end.size());
  return longest;
}

}  // namespace

std::vector<channel_reader::part> channel_reader::feed(std::string_view text) {
  for (const char c : text) take(c);
  return std::exchange(out_, {});
}

std::vector<channel_reader::part> channel_reader::finish() {
  const bool is_markup = in_header_ && held_.starts_with("<|");
  if (!is_markup) say(held_);
  held_.clear();
  return std::exchange(out_, {});
}

void channel_reader::drop_header() {
  if (in_header_) held_.clear();
}

void channel_reader::take(char byte) {
  held_ += byte;
  if (in_header_) {
    if (held_.ends_with(message_begin)) {
      is_reasoning_ = held_.find(reasoning_channel) != std::string::npos;
      in_header_ = false;
      held_.clear();
    } else if (held_.size() > header_bytes_max) {
      in_header_ = is_reasoning_ = false;  // models of this family do not write that
    }
    return;
  }
  for (const std::string_view end : ends) {
    if (!held_.ends_with(end)) continue;
    held_.erase(held_.size() - end.size());
    say(std::exchange(held_, {}));
    in_header_ = true;
    return;
  }
  const auto mark = held_.rfind('<');
  const bool may_end = mark != std::string::npos && held_.size() - mark < longest_end();
  const std::size_t said = may_end ? mark : held_.size();
  say(std::string_view(held_).substr(0, said));
  held_.erase(0, said);
}

void channel_reader::say(std::string_view text) {
  if (text.empty()) return;
  const bool reasons = !in_header_ && is_reasoning_;
  if (out_.empty() || out_.back().is_reasoning != reasons) out_.push_back({reasons, {}});
  out_.back().text += text;
}

}  // namespace redline::tools
