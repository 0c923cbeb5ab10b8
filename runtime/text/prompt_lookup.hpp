#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "runtime/base/ids.hpp"

namespace redline::text {

/// Prompt lookup over one growing log (TECHNIQUES 2): the tokens that once followed the log's last n-gram are the draft.
/// The longest n-gram wins, and of its occurrences the earliest, which in an edit is the one in the old file.
class prompt_lookup {
 public:
  void append(std::span<const token> tokens);
  /// Keeps the first `count` tokens.
  void truncate(std::size_t count);
  [[nodiscard]] std::span<const token> tokens() const { return tokens_; }

  /// At most draft_max tokens that followed an earlier occurrence of the last g tokens of log and `pending`, for the
  /// greatest g from ngram_max down to 1 that occurs. `pending` are draft tokens behind the log that are not in it yet.
  [[nodiscard]] std::vector<token> propose(std::span<const token> pending, std::uint32_t ngram_max,
                                           std::uint32_t draft_max) const;

 private:
  std::vector<token> tokens_;
  std::unordered_map<token, std::vector<std::uint32_t>> places_;  // ascending
};

}  // namespace redline::text
