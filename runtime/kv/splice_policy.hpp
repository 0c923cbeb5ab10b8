#pragma once

#include <cstdint>

namespace redline::kv {

/// What happens to the KV of the tokens after a change in the middle of a sequence. (Ignoring the edit, called "reuse"
/// in the literature, needs no policy: the cache is not notified.)
enum class splice_policy : std::uint8_t {
  exact,     // computed again
  lazy,      // for a moved window: kept, at another position offset
  eager,     // for a moved window: kept, with the keys rotated in place
  pie,       // for an edit: kept, at another position offset, though computed for the older text
  conflict,  // for an edit: kept at their old, wrong positions; for comparison only
  last_,
};

[[nodiscard]] constexpr bool keeps_later(splice_policy p) { return p != splice_policy::exact; }
[[nodiscard]] constexpr bool moves_later(splice_policy p) { return p != splice_policy::conflict; }

}  // namespace redline::kv
