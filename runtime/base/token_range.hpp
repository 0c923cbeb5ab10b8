#pragma once

#include <cstdint>

namespace redline {

/// Tokens [begin, end) of a log.
struct token_range {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  [[nodiscard]] std::uint32_t count() const { return end - begin; }
  bool operator==(const token_range&) const = default;
};

}  // namespace redline
