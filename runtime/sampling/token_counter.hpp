#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/base/ids.hpp"

namespace redline::sampling {

/// A token and its number of occurrences in the output; 0 if it is only in the prompt.
using token_count = std::pair<token, std::uint32_t>;

/// Token counts of a growing log for penalties: counts only new tokens.
class token_counter {
 public:
  /// Counts the tokens of the log, or only of its output; each token is listed once. The log must begin with what was
  /// counted before, unless forget() was called since.
  const std::vector<token_count>& count(std::span<const token> log, std::size_t prompt_count, bool with_prompt) {
    if (prompt_count != prompt_count_ || with_prompt != with_prompt_) forget();
    prompt_count_ = prompt_count;
    with_prompt_ = with_prompt;
    for (std::size_t i = counted_; i < log.size(); ++i) {
      const bool is_output = i >= prompt_count;
      if (!is_output && !with_prompt) continue;
      const auto [place, is_new] = places_.try_emplace(log[i], counts_.size());
      if (is_new) counts_.emplace_back(log[i], 0);
      counts_[place->second].second += is_output ? 1 : 0;
    }
    counted_ = log.size();
    return counts_;
  }
  /// The number of tokens of the log that were counted.
  [[nodiscard]] std::size_t counted() const { return counted_; }
  /// The log has changed: the next count starts over.
  void forget() {
    places_.clear();
    counts_.clear();
    counted_ = 0;
  }

 private:
  std::vector<token_count> counts_;
  std::unordered_map<token, std::size_t> places_;  // indices in counts_
  std::size_t counted_ = 0, prompt_count_ = 0;
  bool with_prompt_ = false;
};

}  // namespace redline::sampling
