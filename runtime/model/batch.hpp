#pragma once

#include <cstdint>
#include <span>

#include "runtime/base/ids.hpp"
#include "runtime/kv/page_table.hpp"
#include "runtime/kv/state_use.hpp"

namespace redline::model {

/// Consecutive tokens of one sequence in one forward pass: a prefill chunk, a decode step, a draft to verify, or
/// jump-forward tokens. The memory it refers to must outlive the call.
struct run {
  std::span<const token> tokens;
  /// Position of tokens[0]; the others follow by one.
  position first_position = 0;
  /// The sequence's page table including this run: the last tokens.size() slots receive the run's keys and values, the
  /// slots before them contain the sequence's earlier ones.
  std::span<const kv::piece> table;
  /// Logits are computed for rows [logits_begin, tokens.size()); tokens.size() means none.
  std::uint32_t logits_begin = 0;
  /// If layers with a window have separate storage: the slots there of the run's tokens, and of the earlier tokens that
  /// its first row sees. Otherwise empty.
  std::span<const kv::piece> window_table = {};
  kv::state_use state = {};  // for models with recurrent layers

  [[nodiscard]] std::uint32_t logits_count() const {
    return logits_begin < tokens.size() ? static_cast<std::uint32_t>(tokens.size()) - logits_begin : 0;
  }
};

}  // namespace redline::model
