#pragma once

#include <cstdint>
#include <optional>

#include "runtime/base/ids.hpp"

namespace redline::sampling {

/// Chooses a row's token instead of the logits. For benchmarks that replay known answers: all passes are computed and
/// all rows sampled as usual, so times are real. Passed to a target model or a drafter when it is made; no message and
/// no request can reach it. Thread-safe.
class token_chooser {
 public:
  struct row {
    std::uint64_t answer = 0;      // the sequence's or session's number
    std::uint64_t index = 0;       // position of the token in the answer
    std::optional<token> drafted;  // the draft token that the row verifies, if any
  };

  virtual ~token_chooser() = default;
  /// nullopt if the logits decide.
  [[nodiscard]] virtual std::optional<token> choose(const row& at) const = 0;
  /// The probability that a drafter, or an MTP layer, is assumed to give its own token.
  [[nodiscard]] virtual float confidence(std::uint64_t answer, float own) const {
    (void)answer;
    return own;
  }
  /// What an MTP layer drafts at this position; nullopt if its logits decide.
  [[nodiscard]] virtual std::optional<token> draft(const row& at) const {
    (void)at;
    return std::nullopt;
  }
  /// Called after the target model verified a draft.
  virtual void note_verified(std::uint64_t answer, std::uint32_t drafted, std::uint32_t accepted) {
    (void)answer, (void)drafted, (void)accepted;
  }
};

/// The chooser for an answer's rows; null if the logits decide.
struct chooser_of_answer {
  const token_chooser* chooser = nullptr;
  std::uint64_t answer = 0;
};

}  // namespace redline::sampling
