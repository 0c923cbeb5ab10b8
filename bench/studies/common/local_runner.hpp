#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "actors/node/engine.hpp"
#include "bench/studies/common/local_client.hpp"
#include "bench/studies/common/names.hpp"

namespace redline::studies {

/// The result of a generation.
struct outcome {
  std::string text;
  std::vector<token> tokens;
  finish_reason reason = finish_reason::stop;
  session_stats stats;
  copy_report copied;
};

/// The actors of this process without a gateway, kept for several generations, which run one at a time or concurrently.
class local_runner {
 public:
  /// Opens and checks the files; the first `run` loads the models. `users` is the maximum of concurrent generations.
  static result<std::unique_ptr<local_runner>> create(engine_options options, std::uint32_t users = 1);
  ~local_runner();

  [[nodiscard]] const engine& parts() const { return *engine_; }
  /// The number by which the target model and its probe identify the next generation, or the first of several.
  [[nodiscard]] sequence_id next_sequence() const { return {generations_ + 1}; }

  /// `on_text` is called on another thread as text comes.
  result<outcome> run(generation_spec request, const draft::draft_options& how,
                      const std::function<void(const session_text&)>& on_text);
  /// Begins all at once; requests that cannot run at once wait, and a failure of one does not affect the others.
  /// Outcomes are in the order of the requests. `on_text` runs on another thread and receives the index of the request.
  result<std::vector<result<outcome>>> run_each(
      std::vector<generation_spec> requests, const draft::draft_options& how,
      const std::function<void(std::size_t, const session_text&)>& on_text = {});
  /// Like run_each, but a failure of one request is a failure of all.
  result<std::vector<outcome>> run_all(std::vector<generation_spec> requests, const draft::draft_options& how,
                                       const std::function<void(const session_text&)>& on_text = {});

 private:
  class answers;
  local_runner();

  std::shared_ptr<answers> answers_;
  std::shared_ptr<local_client::job_queue> job_queue_;
  std::unique_ptr<engine> engine_;
  actor::address client_;
  std::uint64_t generations_ = 0;
  bool started_ = false;
};

}  // namespace redline::studies
