#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace redline {

/// An integer that cannot be mixed up with another kind of integer. Tag only makes the types distinct.
template<class Tag, class Integer = std::uint64_t>
struct strong_id {
  using integer_type = Integer;
  Integer value = 0;
  auto operator<=>(const strong_id&) const = default;
};

using session_id = strong_id<struct session_tag>;
/// The token stream one model works on. Target and draft keep separate caches under the same id.
using sequence_id = strong_id<struct sequence_tag>;
/// Makes a late answer recognizable: proposals and verdicts carry the round that requested them.
using round_id = strong_id<struct round_tag>;
using tenant_id = strong_id<struct tenant_tag>;
using page_id = strong_id<struct page_tag, std::uint32_t>;

/// A vocabulary index. A plain integer, because kernels and files use it.
using token = std::int32_t;
/// Index of a token in its sequence, from 0; independent of where its KV is stored.
using position = std::int32_t;

}  // namespace redline

template<class Tag, class Integer>
struct std::hash<redline::strong_id<Tag, Integer>> {
  std::size_t operator()(const redline::strong_id<Tag, Integer>& id) const noexcept {
    return std::hash<Integer>{}(id.value);
  }
};
