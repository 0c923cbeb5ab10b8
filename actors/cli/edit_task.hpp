#pragma once

#include <functional>
#include <string>
#include <vector>

#include "actors/cli/flags/generation_flags.hpp"
#include "actors/node/engine.hpp"
#include "actors/prompts/edit_prompt.hpp"

namespace redline::actors::cli {

/// The conversation as the engine's target model reads it; the answer may fill the context.
/// copy: the answer is a program over the file, and its text the new file.
result<generation_spec> request_of(const edit_task& task, const draft::draft_options& how, const engine& e,
                                   const std::optional<copy_options>& copy = std::nullopt);

/// What an edit gave, from whichever place it was computed.
struct edit_outcome {
  std::string answer;  // the model's words
  std::string after;   // the new file
  std::uint32_t completion_tokens = 0;
  std::uint32_t target_passes = 0;
  std::uint32_t draft_passes = 0;
  std::uint32_t drafted = 0;
  std::uint32_t accepted = 0;
  std::uint32_t copied_forced = 0;
  std::uint32_t copied_verified = 0;
  std::string program;  // method copy
  double seconds = 0;
  std::string method;

  [[nodiscard]] double tokens_per_second() const { return seconds > 0 ? completion_tokens / seconds : 0; }
  [[nodiscard]] double accepted_per_pass() const {
    return target_passes > 0 ? static_cast<double>(accepted) / target_passes : 0;
  }
};

/// Through a running server's /v1/chat/completions. on_text: as the answer streams in.
result<edit_outcome> edit_on_server(const std::string& url, const std::string& api_key, const edit_task& task,
                                    const method_flags& method, const std::function<void(const std::string&)>& on_text);
/// Through the actors of this process.
result<edit_outcome> edit_locally(engine_options options, const edit_task& task, const method_flags& method,
                                  const std::function<void(const std::string&)>& on_text);

/// Several edits at once, which share passes; outcomes in the order of the tasks. on_bytes: as their answers grow, on
/// other threads, one call at a time.
result<std::vector<result<edit_outcome>>> edit_each_locally(engine_options options, const std::vector<edit_task>& tasks,
                                                            const method_flags& method,
                                                            const std::function<void(std::size_t bytes)>& on_bytes);
std::vector<result<edit_outcome>> edit_each_on_server(const std::string& url, const std::string& api_key,
                                                      const std::vector<edit_task>& tasks, const method_flags& method,
                                                      const std::function<void(std::size_t bytes)>& on_bytes);

}  // namespace redline::actors::cli
