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

/// One tensor of a file: its element type by the format's name, its shape and its bytes.
struct safetensor {
  std::string_view type;             // "F32", "BF16", ...; a literal
  std::vector<std::uint64_t> shape;  // outermost first; empty for a single number
  std::span<const std::byte> bytes;  // little-endian, row-major; a view into the file
};

/// A file in the safetensors format: 8 bytes with the header's length, the header in JSON, then the tensors' bytes.
/// Everything is checked in `open`, as the format demands: known types, a range inside of the file for each tensor with
/// the size that type and shape make, no overlap and no bytes that no tensor has. Views handed out live as long as
/// this.
class safetensors_file {
 public:
  /// Maps and validates; the failure names the file and the tensor.
  static result<std::shared_ptr<const safetensors_file>> open(const std::string& path);
  /// The same over bytes in memory (tests, fuzzing), which must outlive the file; `path` is for messages.
  static result<std::shared_ptr<const safetensors_file>> from_bytes(std::span<const std::byte> bytes,
                                                                    const std::string& path);

  safetensors_file(const safetensors_file&) = delete;
  safetensors_file& operator=(const safetensors_file&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const std::map<std::string, safetensor, std::less<>>& tensors() const { return tensors_; }
  /// Tells the kernel that this tensor will not be read again soon.
  void drop_from_memory(const safetensor& t) const;

 private:
  explicit safetensors_file(std::string path) : path_(std::move(path)) {}
  result<void> parse(std::span<const std::byte> bytes);

  std::string path_;
  std::unique_ptr<mapped_file> mapping_;  // nullptr over bytes in memory
  std::map<std::string, safetensor, std::less<>> tensors_;
};

/// "[2, 3]".
std::string shape_text(std::span<const std::uint64_t> shape);

}  // namespace redline::huggingface
