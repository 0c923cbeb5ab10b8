#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "runtime/base/ids.hpp"

namespace redline {

/// Limits the bytes that a part of the server stores for its clients, per tenant and in total. Thread-safe.
class byte_budget {
 public:
  struct limits {
    std::size_t tenant_bytes_max = 0;
    std::size_t bytes_max = 0;
  };
  /// Which limit a claim would have exceeded.
  enum class verdict : std::uint8_t { granted, tenant_is_full, all_is_full };

  byte_budget() = default;
  byte_budget(const byte_budget&) = delete;
  byte_budget& operator=(const byte_budget&) = delete;

  /// One owner's part, returned when this is destroyed.
  class claim {
   public:
    claim() = default;  // not counted, and never refused
    claim(std::shared_ptr<byte_budget> of, tenant_id tenant) : of_(std::move(of)), tenant_(tenant) {}
    claim(claim&& other) noexcept
        : of_(std::move(other.of_)), tenant_(other.tenant_), bytes_(std::exchange(other.bytes_, 0)) {}
    claim& operator=(claim&&) = delete;
    ~claim() { (void)resize(0, {}); }

    /// Changes the claim to `bytes`. If that would exceed a limit, nothing changes. A decrease is never refused.
    [[nodiscard]] verdict resize(std::size_t bytes, const limits& at_most);
    [[nodiscard]] std::size_t bytes() const { return bytes_; }

   private:
    std::shared_ptr<byte_budget> of_;
    tenant_id tenant_;
    std::size_t bytes_ = 0;
  };

  [[nodiscard]] std::size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t refused_count() const { return refused_count_.load(std::memory_order_relaxed); }

 private:
  std::mutex guard_;
  std::map<tenant_id, std::size_t> by_tenant_;  // without zeros
  std::atomic<std::size_t> bytes_{0};           // changed under the guard
  std::atomic<std::uint64_t> refused_count_{0};
};

}  // namespace redline
