#pragma once

#include <cstdint>

#include "runtime/kv/page_table.hpp"

namespace redline::kv {

/// What becomes of the tokens behind a change in the middle of a sequence. (To ignore an edit altogether, the "reuse"
/// of the literature, is not to tell the cache of it.)
enum class splice_policy : std::uint8_t {
  exact,     // computed again
  lazy,      // a window that moves: they keep keys and values under another offset
  eager,     // the same with the keys turned in place
  pie,       // an edit: they keep keys and values under another offset, though computed for the older text
  conflict,  // the same at their old positions, which are wrong: for comparison
  last_,
};

[[nodiscard]] constexpr bool keeps_later(splice_policy p) { return p != splice_policy::exact; }
[[nodiscard]] constexpr bool moves_later(splice_policy p) { return p != splice_policy::conflict; }
/// What the tokens behind are worth afterwards, at most.
[[nodiscard]] constexpr provenance worth_after(splice_policy p) {
  switch (p) {
    case splice_policy::lazy:
    case splice_policy::eager:
      return provenance::shifted;
    case splice_policy::pie:
    case splice_policy::conflict:
      return provenance::stale;
    default:
      return provenance::exact;
  }
}

}  // namespace redline::kv
