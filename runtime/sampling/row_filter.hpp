#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "runtime/base/ids.hpp"

namespace redline::sampling {

/// Whether a bit mask of tokens contains a token; an empty mask contains all.
[[nodiscard]] constexpr bool allows(std::span<const std::uint64_t> mask, token id) {
  const auto i = static_cast<std::size_t>(id);
  return mask.empty() || (i / 64 < mask.size() && (mask[i / 64] >> i % 64 & 1) != 0);
}

/// A grammar's constraint on the rows of one verification, in order.
class row_filter {
 public:
  virtual ~row_filter() = default;
  /// The tokens that the next row may choose, one bit each; empty means any. Valid until the next call.
  virtual std::span<const std::uint64_t> next_token_mask() = 0;
  /// Set if the next row's token is a copied one, which the caller knows: it may be chosen whatever the mask says, and
  /// it is taken in place of any other token if its probability among the tokens that may be chosen is at least this.
  /// 1: only if it is chosen.
  [[nodiscard]] virtual std::optional<float> copied_min() const { return std::nullopt; }
  /// Consumes the row's token. Returns false if the model does not decide what follows it: later rows do not count.
  virtual bool accept_token(token chosen) = 0;
};

}  // namespace redline::sampling
