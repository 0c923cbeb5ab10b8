#pragma once

#include <cstdint>
#include <span>

#include "runtime/base/ids.hpp"
#include "runtime/kv/page_table.hpp"

namespace redline::model {

/// Consecutive tokens of one sequence in one forward pass: a prefill chunk, a decode step, a draft to verify, or
/// forced tokens. What it refers to must outlive the call.
struct run {
  std::span<const token> tokens;
  /// Position of tokens[0]; the others follow by one.
  position first_position = 0;
  /// The sequence's whole table including this run: its last tokens.size() slots receive the run's keys and values, the
  /// slots before them hold what the run attends to besides itself.
  std::span<const kv::piece> table;
  /// Rows [logits_begin, tokens.size()) want logits; tokens.size() for none.
  std::uint32_t logits_begin = 0;

  [[nodiscard]] std::uint32_t logits_count() const {
    return logits_begin < tokens.size() ? static_cast<std::uint32_t>(tokens.size()) - logits_begin : 0;
  }
};

}  // namespace redline::model
