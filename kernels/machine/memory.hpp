#pragma once

#include <cstddef>
#include <utility>

namespace redline::kernels {

/// Zeroed memory directly from the operating system, page-aligned, with huge pages if available: from 2 MiB on it
/// begins at a multiple of 2 MiB, and the rest after the last whole 2 MiB uses small pages, so that nothing is rounded
/// up. Pages cost nothing until they are touched. Can be moved, not copied.
class memory_block {
 public:
  memory_block() = default;
  /// Throws std::bad_alloc if the address space or the commit limit is exhausted.
  explicit memory_block(std::size_t bytes);
  ~memory_block();
  memory_block(memory_block&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  memory_block& operator=(memory_block&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace redline::kernels
