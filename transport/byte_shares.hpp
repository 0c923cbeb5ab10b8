#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/base/tenant_share.hpp"

namespace redline::transport {

/// Counts the bytes that connections buffer under a common limit. While the limit is exceeded, connections above the
/// fair share must yield; at least one is above it then, unless all buffer little.
class byte_shares {
 public:
  /// small_bytes: the number of bytes that a connection may always buffer.
  byte_shares(std::uint64_t total_max, std::uint64_t small_bytes) : total_max_(total_max), small_(small_bytes) {}

  /// Reports that a connection that buffered `from` bytes now buffers `to`.
  void change(std::uint64_t from, std::uint64_t to) {
    total_ = total_ - from + to;
    if (from == 0 && to > 0) ++holders_;
    if (from > 0 && to == 0) --holders_;
  }
  [[nodiscard]] bool is_over() const { return total_ > total_max_; }
  [[nodiscard]] std::uint64_t fair_share() const { return std::max(small_, equal_share{total_max_, holders_}.whole()); }
  [[nodiscard]] std::uint64_t total() const { return total_; }

 private:
  std::uint64_t total_max_, small_;
  std::uint64_t total_ = 0, holders_ = 0;
};

}  // namespace redline::transport
