#pragma once

#include <functional>
#include <string>
#include <vector>

#include "actors/cli/flags/generation_flags.hpp"
#include "actors/cli/model_door.hpp"
#include "actors/prompts/edit_prompt.hpp"

namespace redline::actors::cli {

/// The result of an edit.
struct edit_outcome {
  std::string answer;  // the model's text
  std::string after;   // the new file
  std::uint32_t completion_tokens = 0;
  std::uint32_t target_passes = 0;
  std::uint32_t draft_passes = 0;
  std::uint32_t drafted = 0;
  std::uint32_t accepted = 0;
  std::uint32_t copied_forced = 0;
  std::uint32_t copied_verified = 0;
  std::string program;              // for method copy, like the next one
  std::uint32_t refused_spans = 0;  // if there are any, the model wrote the whole file after the program
  double seconds = 0;
  std::string method;

  [[nodiscard]] double tokens_per_second() const { return seconds > 0 ? completion_tokens / seconds : 0; }
  [[nodiscard]] double accepted_per_pass() const {
    return target_passes > 0 ? static_cast<double>(accepted) / target_passes : 0;
  }
};

/// Edits a whole file by /v1/chat/completions. on_text: called as the answer streams in. A program with a span that the
/// model refused never becomes the file: then the model is asked for the whole file, with the old one as prediction.
result<edit_outcome> edit_file(const model_door& door, const edit_task& task, const method_flags& method,
                               const std::function<void(const std::string&)>& on_text);

inline constexpr std::size_t edits_at_once_max = 64;  // at a private server; further edits wait for a slot
/// Makes several edits at once, which share passes. Outcomes are in the order of the tasks. on_bytes: called as the
/// answers grow, on other threads, one call at a time.
std::vector<result<edit_outcome>> edit_each(const model_door& door, const std::vector<edit_task>& tasks,
                                            const method_flags& method,
                                            const std::function<void(std::size_t bytes)>& on_bytes);

}  // namespace redline::actors::cli
