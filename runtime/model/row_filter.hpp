#pragma once

#include <cstdint>
#include <span>

#include "runtime/base/ids.hpp"

namespace redline::model {

/// What a grammar says to the rows of one verification, in order.
class row_filter {
 public:
  virtual ~row_filter() = default;
  /// Tokens that the next row may choose, a bit each; empty: any. Valid until the next call.
  virtual std::span<const std::uint64_t> allowed() = 0;
  /// The row chose `chosen`. False when what stands behind it is not for the model to say: no further row counts.
  virtual bool take(token chosen) = 0;
};

}  // namespace redline::model
