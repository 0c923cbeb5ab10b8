#pragma once

#include <cstdint>

namespace redline::grammar {

/// Units of work that grammars took on this thread: bytes tried or spelled, texts compared, parts compiled. Limits and
/// tests count work in them, since seconds depend on the machine.
inline constinit thread_local std::uint64_t steps_taken = 0;

}  // namespace redline::grammar
