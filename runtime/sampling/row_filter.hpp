#pragma once

#include <cstdint>
#include <span>

#include "runtime/base/ids.hpp"

namespace redline::sampling {

/// A grammar's constraint on the rows of one verification, in order.
class row_filter {
 public:
  virtual ~row_filter() = default;
  /// The tokens that the next row may choose, one bit each; empty means any. Valid until the next call.
  virtual std::span<const std::uint64_t> next_token_mask() = 0;
  /// Consumes the row's token. Returns false if the model does not decide what follows it: later rows do not count.
  virtual bool accept_token(token chosen) = 0;
};

}  // namespace redline::sampling
