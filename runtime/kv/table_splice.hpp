#pragma once

#include <cstdint>

#include "runtime/kv/splice_policy.hpp"

namespace redline::kv {

/// A change in the middle of a sequence's memory, which contains only the tokens that have KV: tokens [at, at +
/// removed_count) are dropped, and those after them move.
struct table_splice {
  std::uint32_t keep_count = 0;  // before the splice, all tokens after the first keep_count are dropped
  std::uint32_t at = 0;
  std::uint32_t removed_count = 0;
  std::int32_t shift = 0;  // positions by which the tokens after the splice move
  splice_policy policy = splice_policy::lazy;
  bool operator==(const table_splice&) const = default;
};

}  // namespace redline::kv
