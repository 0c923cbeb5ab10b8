#pragma once

#include <cstddef>

#include "kernels/machine/memory.hpp"

namespace redline::model {

/// A growable array of floats, aligned to 64 bytes. Growing throws std::bad_alloc.
class float_buffer {
 public:
  float_buffer() = default;
  explicit float_buffer(std::size_t count) : memory_(count * sizeof(float)) {}
  [[nodiscard]] float* data() const { return reinterpret_cast<float*>(memory_.data()); }
  [[nodiscard]] std::size_t size() const { return memory_.size() / sizeof(float); }
  /// Growing discards the contents.
  void grow(std::size_t count) {
    if (count > size()) *this = float_buffer(count + count / 2);
  }

 private:
  kernels::memory_block memory_;
};

}  // namespace redline::model
