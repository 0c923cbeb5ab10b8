#pragma once

#include <cstdint>

namespace redline::grammar {

/// Units of work, of some 10 ns, that grammars took on this thread: bytes tried, texts compared, parts compiled. Limits
/// and tests count work in them, since seconds depend on the machine.
inline constinit thread_local std::uint64_t steps_taken = 0;

}  // namespace redline::grammar
