#include "runtime/base/replacement_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/errno_text.hpp"
#include "runtime/base/hex.hpp"

namespace redline {
namespace {

constexpr std::size_t waiting_bytes_max = std::size_t{1} << 20;
constexpr int names_tried_max = 16;
constexpr std::string_view access_list = "system.posix_acl_access";
constexpr std::size_t attribute_bytes_max = 64 << 10, attribute_names_bytes_max = 64 << 10;  // Linux's limits

std::string random_name() {
  std::random_device random;
  return ".redline-" + to_hex(std::uint64_t{random()} << 32 | random());
}

/// Calls `make` with names until one is free. nullopt if it failed for another reason, which is in errno.
template<class Make>
std::optional<std::string> find_name(Make make) {
  for (int i = 0; i < names_tried_max; ++i) {
    std::string name = random_name();
    if (make(name)) return name;
    if (errno != EEXIST) break;
  }
  return std::nullopt;
}

/// Attributes that control access or that users set; the file system owns the others.
bool is_kept(std::string_view attribute) { return attribute == access_list || attribute.starts_with("user."); }

/// The names of a file's attributes that must be preserved; empty if its file system supports none.
std::vector<std::string> kept_attributes(int descriptor) {
  std::string names(attribute_names_bytes_max, '\0');
  const ssize_t size = ::flistxattr(descriptor, names.data(), names.size());
  std::vector<std::string> out;
  for (std::string_view left(names.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))); !left.empty();) {
    const std::string_view name = left.substr(0, left.find('\0'));
    if (is_kept(name)) out.emplace_back(name);
    left.remove_prefix(std::min(name.size() + 1, left.size()));
  }
  return out;
}

/// Returns false, with errno set, if an attribute cannot be copied.
bool copy_attributes(int from, int to) {
  const auto wanted = kept_attributes(from);
  for (const std::string& name : wanted) {
    std::string value(attribute_bytes_max, '\0');
    const ssize_t size = ::fgetxattr(from, name.c_str(), value.data(), value.size());
    if (size < 0 || ::fsetxattr(to, name.c_str(), value.data(), static_cast<std::size_t>(size), 0) != 0) return false;
  }
  // A new file may have inherited an access control list from its folder.
  for (const std::string& name : kept_attributes(to)) {
    if (std::find(wanted.begin(), wanted.end(), name) == wanted.end() && ::fremovexattr(to, name.c_str()) != 0)
      return false;
  }
  return true;
}

failure not_kept(const folder_entry& place, const std::string& what) {
  return {errc::io_error, place.path() + ": " + what + "; it was not changed"};
}

/// Preserves owner, group, mode, access control lists and attributes of the existing file, or fails.
result<void> keep_everything(const folder_entry& place, const struct stat& old, int descriptor) {
  if (old.st_nlink > 1) {
    return not_kept(place, "it has " + std::to_string(old.st_nlink) +
                               " names (hard links), of which a new file would replace only this one");
  }
  const int from = ::openat(place.folder(), place.name().c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  const bool is_copied = from >= 0 && copy_attributes(from, descriptor);
  const std::string why = errno_text();
  if (from >= 0) ::close(from);
  if (!is_copied)
    return not_kept(place, "its access control list and attributes cannot be copied to a new file: " + why);
  return {};
}

/// Sets the owner first, because changing it clears the set-id bits.
result<void> keep(const folder_entry& place, const struct stat& old, int descriptor, replacement_file::keeps what) {
  static_cast<void>(::fchown(descriptor, old.st_uid, old.st_gid));
  if (what == replacement_file::keeps::everything) REDLINE_TRY(keep_everything(place, old, descriptor));
  struct stat now {};
  if (::fstat(descriptor, &now) != 0) return not_kept(place, errno_text());
  const bool is_same_owner = now.st_uid == old.st_uid && now.st_gid == old.st_gid;
  const mode_t mode = old.st_mode & (is_same_owner ? 07777 : 01777);
  static_cast<void>(::fchmod(descriptor, mode));
  if (what == replacement_file::keeps::mode) return {};
  if (!is_same_owner) {
    return not_kept(place, "it belongs to user " + std::to_string(old.st_uid) + " and group " +
                               std::to_string(old.st_gid) + ", to which a new file cannot be assigned");
  }
  if (::fstat(descriptor, &now) != 0 || (now.st_mode & 07777) != mode)
    return not_kept(place, "its mode cannot be kept");
  return {};
}

}  // namespace

result<replacement_file> replacement_file::create(const std::string& path) {
  auto place = folder_entry::at(path);
  if (!place) return failure{errc::io_error, path + ": cannot be written: " + errno_text()};
  return create(std::move(*place), keeps::mode);
}

result<replacement_file> replacement_file::create(folder_entry place, keeps what) {
  struct stat old {};
  const bool exists = ::fstatat(place.folder(), place.name().c_str(), &old, AT_SYMLINK_NOFOLLOW) == 0;
  if (exists && !S_ISREG(old.st_mode)) {
    return failure{errc::io_error, place.path() + ": expected a regular file or no file to write to, found " +
                                       (S_ISLNK(old.st_mode)   ? "a symbolic link"
                                        : S_ISDIR(old.st_mode) ? "a folder"
                                                               : "a device, pipe or socket") +
                                       "; it was not changed"};
  }
  constexpr mode_t usual_mode = 0666;  // reduced by the process's umask
  std::string temporary;
  int descriptor = ::openat(place.folder(), ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, usual_mode);
  if (descriptor < 0) {
    const auto name = find_name([&](const std::string& free) {
      descriptor =
          ::openat(place.folder(), free.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, usual_mode);
      return descriptor >= 0;
    });
    if (!name) return failure{errc::io_error, place.path() + ": cannot be written: " + errno_text()};
    temporary = *name;
  }
  replacement_file made(std::move(place), descriptor, std::move(temporary));
  if (exists) REDLINE_TRY(keep(made.place_, old, descriptor, what));
  return made;
}

replacement_file::replacement_file(replacement_file&& other) noexcept
    : place_(std::move(other.place_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      temporary_(std::exchange(other.temporary_, {})),
      waiting_(std::move(other.waiting_)),
      written_(other.written_) {}

replacement_file::~replacement_file() {
  if (!temporary_.empty()) ::unlinkat(place_.folder(), temporary_.c_str(), 0);
  if (descriptor_ >= 0) ::close(descriptor_);
}

failure replacement_file::refused(const char* what) const {
  return {errc::io_error, place_.path() + ": " + what + ": " + errno_text()};
}

result<void> replacement_file::write(std::span<const std::byte> bytes) {
  written_ += bytes.size();
  waiting_.insert(waiting_.end(), bytes.begin(), bytes.end());
  if (waiting_.size() < waiting_bytes_max) return {};
  return flush();
}

result<void> replacement_file::flush() {
  for (std::size_t done = 0; done < waiting_.size();) {
    const auto n = ::write(descriptor_, waiting_.data() + done, waiting_.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return refused("cannot be written");
    done += static_cast<std::size_t>(n);
  }
  waiting_.clear();
  return {};
}

result<void> replacement_file::commit() {
  REDLINE_TRY(flush());
  if (::fsync(descriptor_) != 0) return refused("cannot be written");
  if (temporary_.empty()) {
    const std::string unnamed = "/proc/self/fd/" + std::to_string(descriptor_);
    const auto name = find_name([&](const std::string& free) {
      return ::linkat(AT_FDCWD, unnamed.c_str(), place_.folder(), free.c_str(), AT_SYMLINK_FOLLOW) == 0;
    });
    if (!name) return refused("cannot be written");
    temporary_ = *name;
  }
  if (::renameat(place_.folder(), temporary_.c_str(), place_.folder(), place_.name().c_str()) != 0)
    return refused("cannot be replaced");
  temporary_.clear();
  const int folder = ::openat(place_.folder(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {  // makes the new name durable as well, if folders can be synced
    (void)::fsync(folder);
    ::close(folder);
  }
  return {};
}

result<void> replace_file(const std::string& path, std::string_view bytes) {
  REDLINE_TRY_ASSIGN(replacement_file file, replacement_file::create(path));
  REDLINE_TRY(file.write(std::as_bytes(std::span(bytes))));
  return file.commit();
}

result<void> replace_edited(folder_entry place, std::string_view before, std::string_view bytes) {
  REDLINE_TRY_ASSIGN(const auto now, place.read(before.size() + 1));
  if (now.bytes != before) {
    return failure{errc::io_error,
                   place.path() + " was changed by another program in the meantime; it was not overwritten"};
  }
  REDLINE_TRY_ASSIGN(auto file, replacement_file::create(std::move(place), replacement_file::keeps::everything));
  REDLINE_TRY(file.write(std::as_bytes(std::span(bytes))));
  return file.commit();
}

}  // namespace redline
