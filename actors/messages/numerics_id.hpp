#pragma once

#include <cstdint>
#include <string_view>
#include <tuple>

#include "runtime/base/hash.hpp"

namespace redline::actors {

/// What decides the bits of answers besides the model: how products are computed, KV type and version. 0 if unknown.
struct numerics_id {
  std::uint32_t value = 0;
  numerics_id() = default;
  explicit numerics_id(std::uint32_t known) : value(known) {}
  /// description: see process_card::numerics; empty means unknown.
  explicit numerics_id(std::string_view description)
      : value(description.empty() ? 0 : fnv1a().add(description).folded() | 1U) {}
  explicit operator bool() const { return value != 0; }
  bool operator==(const numerics_id&) const = default;
  static constexpr auto fields(auto& self) { return std::tie(self.value); }
};

}  // namespace redline::actors
