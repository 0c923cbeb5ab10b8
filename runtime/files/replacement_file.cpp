#include "runtime/files/replacement_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <optional>
#include <random>
#include <system_error>
#include <utility>

#include "runtime/base/hex.hpp"

namespace redline {
namespace {

constexpr std::size_t waiting_bytes_max = std::size_t{1} << 20;
constexpr int names_tried_max = 16;

std::string errno_text() { return std::system_category().message(errno); }

std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string random_name(const std::string& path) {
  std::random_device random;
  return folder_of(path) + "/.redline-" + to_hex(std::uint64_t{random()} << 32 | random());
}

/// Calls `make` with names until one is free. Nullopt: it failed for another reason, and errno says which.
template<class Make>
std::optional<std::string> find_name(const std::string& path, Make make) {
  for (int i = 0; i < names_tried_max; ++i) {
    std::string name = random_name(path);
    if (make(name)) return name;
    if (errno != EEXIST) break;
  }
  return std::nullopt;
}

}  // namespace

result<replacement_file> replacement_file::create(const std::string& path) {
  struct stat old {};
  const bool exists = ::lstat(path.c_str(), &old) == 0;
  if (exists && !S_ISREG(old.st_mode)) {
    return failure{errc::io_error, path + ": expected a regular file or no file to write to, found " +
                                       (S_ISLNK(old.st_mode)   ? "a symbolic link"
                                        : S_ISDIR(old.st_mode) ? "a folder"
                                                               : "a device, pipe or socket") +
                                       "; it is left as it is"};
  }
  constexpr mode_t usual_mode = 0666;  // less what the process's mask takes away
  std::string temporary;
  int descriptor = ::open(folder_of(path).c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, usual_mode);
  if (descriptor < 0) {
    const auto name = find_name(path, [&](const std::string& free) {
      descriptor = ::open(free.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, usual_mode);
      return descriptor >= 0;
    });
    if (!name) return failure{errc::io_error, path + ": cannot be written: " + errno_text()};
    temporary = *name;
  }
  if (exists) (void)::fchmod(descriptor, old.st_mode & 07777);
  return replacement_file(path, descriptor, std::move(temporary));
}

replacement_file::replacement_file(replacement_file&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      temporary_(std::exchange(other.temporary_, {})),
      waiting_(std::move(other.waiting_)),
      written_(other.written_) {}

replacement_file::~replacement_file() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  if (descriptor_ >= 0) ::close(descriptor_);
}

failure replacement_file::refused(const char* what) const {
  return {errc::io_error, path_ + ": " + what + ": " + errno_text()};
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
    const auto name = find_name(path_, [&](const std::string& free) {
      return ::linkat(AT_FDCWD, unnamed.c_str(), AT_FDCWD, free.c_str(), AT_SYMLINK_FOLLOW) == 0;
    });
    if (!name) return refused("cannot be written");
    temporary_ = *name;
  }
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return refused("cannot be replaced");
  temporary_.clear();
  const int folder = ::open(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {  // the new name is durable as well, where folders can be synchronised
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

}  // namespace redline
