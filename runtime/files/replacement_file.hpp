#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.hpp"

namespace redline {

/// A new file that takes the place of another in one step, when it is complete: readers see the old bytes or the new
/// ones, also after a loss of power. Until then it has no name, so that nothing is left of it when the process ends; on
/// file systems that cannot do that it has a random one in the same folder. Without `commit` it goes away.
class replacement_file {
 public:
  /// Refuses a path that exists and is no regular file: it may be a device, and a link's target would stay as it was.
  /// An existing file's mode is kept.
  static result<replacement_file> create(const std::string& path);
  ~replacement_file();
  replacement_file(replacement_file&& other) noexcept;
  replacement_file& operator=(replacement_file&&) = delete;
  replacement_file(const replacement_file&) = delete;
  replacement_file& operator=(const replacement_file&) = delete;

  result<void> write(std::span<const std::byte> bytes);
  /// Makes the bytes durable and puts the file in its place.
  result<void> commit();
  [[nodiscard]] std::uint64_t written_bytes() const { return written_; }

 private:
  replacement_file(std::string path, int descriptor, std::string temporary)
      : path_(std::move(path)), descriptor_(descriptor), temporary_(std::move(temporary)) {}
  result<void> flush();
  [[nodiscard]] failure refused(const char* what) const;

  std::string path_;
  int descriptor_;         // -1 once moved from
  std::string temporary_;  // the file's name until it is in its place; empty: it has none
  std::vector<std::byte> waiting_;
  std::uint64_t written_ = 0;
};

/// The whole of it at once.
result<void> replace_file(const std::string& path, std::string_view bytes);

}  // namespace redline
