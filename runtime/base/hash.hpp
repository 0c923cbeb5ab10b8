#pragma once

#include <cstdint>
#include <string_view>

namespace redline {

/// 64-bit FNV-1a: the same on every machine and in every version. For names and digests; not secure against an
/// adversary.
class fnv1a {
 public:
  constexpr fnv1a& add(std::uint8_t byte) {
    state_ = (state_ ^ byte) * 0x100000001b3;
    return *this;
  }
  constexpr fnv1a& add(std::string_view bytes) {
    for (const char c : bytes) add(static_cast<std::uint8_t>(c));
    return *this;
  }
  [[nodiscard]] constexpr std::uint64_t value() const { return state_; }
  /// The hash folded to 32 bits.
  [[nodiscard]] constexpr std::uint32_t folded() const { return static_cast<std::uint32_t>(state_ ^ state_ >> 32); }

 private:
  std::uint64_t state_ = 0xcbf29ce484222325;
};

}  // namespace redline
