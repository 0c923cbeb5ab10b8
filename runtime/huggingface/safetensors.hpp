#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/mapped_file.hpp"
#include "runtime/base/result.hpp"

namespace redline::huggingface {

/// One tensor of a file: the format's name of its element type, its shape and its bytes.
struct safetensor {
  std::string_view type;             // "F32", "BF16", ...; a literal
  std::vector<std::uint64_t> shape;  // outermost first; empty for a single number
  std::span<const std::byte> bytes;  // little-endian, row-major; a view into the file
};

/// A file in the safetensors format: 8 bytes with the header's length, the header in JSON, then the tensors' bytes.
/// `open` checks everything that the format demands: known types, a range inside the file for each tensor with the size
/// implied by type and shape, no overlap, and no unused bytes. Returned views are valid as long as this object exists.
class safetensors_file {
 public:
  /// Maps and validates; the failure names the file and the tensor.
  static result<std::shared_ptr<const safetensors_file>> open(const std::string& path);
  /// Reads bytes in memory (tests, fuzzing), which must outlive the file; `path` is for messages.
  static result<std::shared_ptr<const safetensors_file>> from_bytes(std::span<const std::byte> bytes,
                                                                    const std::string& path);

  safetensors_file(const safetensors_file&) = delete;
  safetensors_file& operator=(const safetensors_file&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const std::map<std::string, safetensor, std::less<>>& tensors() const { return tensors_; }
  /// Advises the kernel that this tensor will not be read again soon.
  void drop_from_memory(const safetensor& t) const;

 private:
  explicit safetensors_file(std::string path) : path_(std::move(path)) {}
  result<void> parse(std::span<const std::byte> bytes);

  std::string path_;
  std::unique_ptr<mapped_file> mapping_;  // nullptr for bytes in memory
  std::map<std::string, safetensor, std::less<>> tensors_;
};

/// Formats "[2, 3]".
std::string shape_text(std::span<const std::uint64_t> shape);

}  // namespace redline::huggingface
