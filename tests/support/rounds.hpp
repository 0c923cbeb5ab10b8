#pragma once

#include <cstddef>

namespace redline::test {

/// How much of a long test runs: sanitizer builds compute ten to twenty times slower, and what they look for shows in a
/// few rounds.
constexpr std::size_t rounds(std::size_t usual, [[maybe_unused]] std::size_t under_sanitizers) {
#ifdef REDLINE_SANITIZED
  return under_sanitizers;
#else
  return usual;
#endif
}

}  // namespace redline::test
