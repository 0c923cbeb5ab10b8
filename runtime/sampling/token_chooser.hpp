#pragma once

#include <cstdint>
#include <optional>

#include "runtime/base/ids.hpp"

namespace redline::sampling {

/// Chooses a row's token in place of the logits. For benchmarks, which replay known answers: all passes are computed
/// and all rows sampled as always, so times are real. Given to a target model or a drafter when it is made; no message
/// and no request can reach it. Safe from any thread.
class token_chooser {
 public:
  struct row {
    std::uint64_t answer = 0;      // the sequence's or session's number
    std::uint64_t index = 0;       // of the token in the answer
    std::optional<token> drafted;  // what the row verifies, if anything
  };

  virtual ~token_chooser() = default;
  /// nullopt: as the logits say.
  [[nodiscard]] virtual std::optional<token> choose(const row& at) const = 0;
  /// The probability that a drafter is taken to give its own token.
  [[nodiscard]] virtual float confidence(std::uint64_t answer, float own) const {
    (void)answer;
    return own;
  }
  /// The target model verified a draft.
  virtual void note_verified(std::uint64_t answer, std::uint32_t drafted, std::uint32_t accepted) {
    (void)answer, (void)drafted, (void)accepted;
  }
};

/// The chooser that an answer's rows are asked of; null: the logits decide.
struct chooser_of_answer {
  const token_chooser* chooser = nullptr;
  std::uint64_t answer = 0;
};

}  // namespace redline::sampling
