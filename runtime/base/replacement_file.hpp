#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/folder_entry.hpp"
#include "runtime/base/result.hpp"

namespace redline {

/// A new file that replaces another atomically when it is complete: readers see the old bytes or the new ones, even
/// after a loss of power. Until then it has no name, so that nothing remains if the process ends; on file systems
/// without that feature it has a random name in the same folder. Without `commit` it is removed.
class replacement_file {
 public:
  /// What the new file preserves of an existing one. The owner is preserved if this process may change owners; if not,
  /// `mode` drops the set-id bits, which would become those of this process's user. `everything` is for files that
  /// users work on: owner, group, mode, access control lists and user attributes stay, or it fails. It also fails for a
  /// file with several names (hard links), because the new file would have only one.
  enum class keeps : std::uint8_t { mode, everything };
  /// Refuses a path that exists and is not a regular file: it may be a device, and a link's target would not change.
  static result<replacement_file> create(const std::string& path);
  static result<replacement_file> create(folder_entry place, keeps what);
  ~replacement_file();
  replacement_file(replacement_file&& other) noexcept;
  replacement_file& operator=(replacement_file&&) = delete;
  replacement_file(const replacement_file&) = delete;
  replacement_file& operator=(const replacement_file&) = delete;

  result<void> write(std::span<const std::byte> bytes);
  /// Makes the bytes durable and puts the file in place.
  result<void> commit();
  [[nodiscard]] std::uint64_t written_bytes() const { return written_; }

 private:
  replacement_file(folder_entry place, int descriptor, std::string temporary)
      : place_(std::move(place)), descriptor_(descriptor), temporary_(std::move(temporary)) {}
  result<void> flush();
  [[nodiscard]] failure refused(const char* what) const;

  folder_entry place_;
  int descriptor_;         // -1 after a move
  std::string temporary_;  // the file's name until it is in place; empty if it has none
  std::vector<std::byte> waiting_;
  std::uint64_t written_ = 0;
};

/// Writes the whole file at once.
result<void> replace_file(const std::string& path, std::string_view bytes);

/// Replaces a file whose content is still `before` by `bytes`, and preserves everything else
/// (`replacement_file::keeps`). On failure the file stays unchanged.
result<void> replace_edited(folder_entry place, std::string_view before, std::string_view bytes);

}  // namespace redline
