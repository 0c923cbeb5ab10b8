#include "actors/http/request/answer_writer.hpp"

#include <algorithm>

namespace redline::api {

std::string_view text_of(finish_reason why) {
  switch (why) {
    case finish_reason::stop:
      return "stop";
    case finish_reason::length:
      return "length";
    case finish_reason::content_filter:
      return "content_filter";
    case finish_reason::tool_calls:
      return "tool_calls";
    case finish_reason::function_call:
      return "function_call";
  }
  return "stop";
}

source_report& source_report::operator+=(const source_report& other) {
  drafted += other.drafted;
  accepted += other.accepted;
  return *this;
}

usage_report& usage_report::operator+=(const usage_report& other) {
  prompt_tokens += other.prompt_tokens;
  cached_tokens += other.cached_tokens;
  completion_tokens += other.completion_tokens;
  reasoning_tokens += other.reasoning_tokens;
  drafted += other.drafted;
  accepted += other.accepted;
  for (const auto from : draft::all_sources) of(from) += other.of(from);
  copied_forced += other.copied_forced;
  copied_verified += other.copied_verified;
  rounds += other.rounds;
  target_passes += other.target_passes;
  draft_passes += other.draft_passes;
  rows += other.rows;
  evicted += other.evicted;
  evictions += other.evictions;
  reevaluated += other.reevaluated;
  first_token_seconds = std::max(first_token_seconds, other.first_token_seconds);
  seconds = std::max(seconds, other.seconds);
  return *this;
}

}  // namespace redline::api
