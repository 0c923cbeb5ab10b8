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

/// A new file that takes the place of another in one step, when it is complete: readers see the old bytes or the new
/// ones, also after a loss of power. Until then it has no name, so that nothing is left of it when the process ends; on
/// file systems that cannot do that it has a random one in the same folder. Without `commit` it goes away.
class replacement_file {
 public:
  /// What the new file has of one that is there. The owner is kept wherever this process may give files away; where it
  /// may not, a file of `mode` loses its set-id bits, which would become this process's user's. `everything` is for
  /// files that users work on: owner, group, mode, access control lists and user attributes stay, or it is
  /// refused; so is a file with several names (hard links), of which the new one would have this one only.
  enum class keeps : std::uint8_t { mode, everything };
  /// Refuses a path that exists and is no regular file: it may be a device, and a link's target would stay as it was.
  static result<replacement_file> create(const std::string& path);
  static result<replacement_file> create(folder_entry place, keeps what);
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
  replacement_file(folder_entry place, int descriptor, std::string temporary)
      : place_(std::move(place)), descriptor_(descriptor), temporary_(std::move(temporary)) {}
  result<void> flush();
  [[nodiscard]] failure refused(const char* what) const;

  folder_entry place_;
  int descriptor_;         // -1 once moved from
  std::string temporary_;  // the file's name until it is in its place; empty: it has none
  std::vector<std::byte> waiting_;
  std::uint64_t written_ = 0;
};

/// The whole of it at once.
result<void> replace_file(const std::string& path, std::string_view bytes);

/// Puts `bytes` in the place of a file that is still `before`, which keeps everything else that it has
/// (`replacement_file::keeps`); fails where that cannot be, and then leaves it as it is.
result<void> replace_edited(folder_entry place, std::string_view before, std::string_view bytes);

}  // namespace redline
