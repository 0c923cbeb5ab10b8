#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "actors/node/engine.hpp"
#include "bench/studies/common/local_client.hpp"
#include "bench/studies/common/names.hpp"

namespace redline::studies {

/// What a generation gave.
struct outcome {
  std::string text;
  std::vector<token> tokens;
  finish_reason reason = finish_reason::stop;
  session_stats stats;
  copy_report copied;
};

/// The actors of this process without a gateway, kept for several generations, one at a time or several users' at once.
class local_runner {
 public:
  /// Opens and checks the files; the models are loaded by the first `run`. users: generations at once at most.
  static result<std::unique_ptr<local_runner>> create(engine_options options, std::uint32_t users = 1);
  ~local_runner();

  [[nodiscard]] const engine& parts() const { return *engine_; }
  /// Under which number the target model and its probe will know the next generation; of several the first.
  [[nodiscard]] sequence_id next_sequence() const { return {generations_ + 1}; }

  /// on_text: called on another thread as text comes.
  result<outcome> run(generation_spec request, const draft::draft_options& how,
                      const std::function<void(const session_text&)>& on_text);
  /// All begin at once, and what does not run at once waits; one that fails is no failure of the others. Outcomes are
  /// in the order of the requests, and on_text, on another thread, has the request's place among them.
  result<std::vector<result<outcome>>> run_each(
      std::vector<generation_spec> requests, const draft::draft_options& how,
      const std::function<void(std::size_t, const session_text&)>& on_text = {});
  /// The same where a failure of one is a failure of all.
  result<std::vector<outcome>> run_all(std::vector<generation_spec> requests, const draft::draft_options& how,
                                       const std::function<void(const session_text&)>& on_text = {});

 private:
  class answers;
  local_runner();

  std::shared_ptr<answers> answers_;
  std::shared_ptr<local_client::desk> desk_;
  std::unique_ptr<engine> engine_;
  actor::address client_;
  std::uint64_t generations_ = 0;
  bool started_ = false;
};

}  // namespace redline::studies
