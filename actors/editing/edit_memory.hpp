#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "actors/messages/edit_messages.hpp"

namespace redline::actors {

/// The bytes that edit sessions hold, of each tenant and of all. Any thread may ask.
class edit_memory {
 public:
  edit_memory() = default;
  edit_memory(const edit_memory&) = delete;
  edit_memory& operator=(const edit_memory&) = delete;

  /// One session's part, given back when this dies.
  class claim {
   public:
    claim() = default;  // counted nowhere, and never refused
    claim(std::shared_ptr<edit_memory> of, tenant_id tenant) : of_(std::move(of)), tenant_(tenant) {}
    claim(claim&& other) noexcept : of_(std::move(other.of_)), tenant_(other.tenant_), bytes_(other.bytes_) {}
    claim& operator=(claim&&) = delete;
    ~claim();

    /// From now on `bytes` in place of what was held; or says which limit that breaks, and changes nothing. Less than
    /// before is never refused.
    std::optional<refusal> resize(std::size_t bytes, const edit_limits& limits);

   private:
    std::shared_ptr<edit_memory> of_;
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

}  // namespace redline::actors
