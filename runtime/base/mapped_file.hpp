#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "runtime/base/result.hpp"

namespace redline {

/// A regular file's bytes, mapped read-only for as long as this object lives. Whoever cuts the file shorter meanwhile
/// ends the process; replacing it by a rename is safe.
class mapped_file {
 public:
  /// Follows symbolic links. file_unreadable for what cannot be opened, mapped, or is no regular file.
  static result<std::unique_ptr<mapped_file>> open(const std::string& path);
  ~mapped_file();
  mapped_file(const mapped_file&) = delete;
  mapped_file& operator=(const mapped_file&) = delete;

  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

  /// Tells the kernel that `part`, a span inside of bytes(), will not be read again soon. Its neighbours stay.
  void drop_from_memory(std::span<const std::byte> part) const;

 private:
  explicit mapped_file(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::span<const std::byte> bytes_;  // empty without a mapping: an empty file cannot be mapped
};

}  // namespace redline
