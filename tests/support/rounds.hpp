#pragma once

#include <cstddef>

namespace redline::test {

/// Rounds of a long test. Sanitizer builds run fewer of them, because they are ten to twenty times slower and find
/// their errors in a few rounds.
constexpr std::size_t rounds([[maybe_unused]] std::size_t usual, [[maybe_unused]] std::size_t under_sanitizers) {
#ifdef REDLINE_SANITIZED
  return under_sanitizers;
#else
  return usual;
#endif
}

}  // namespace redline::test
