#include "runtime/base/folder_entry.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include "runtime/base/errno_text.hpp"

namespace redline {
namespace {

constexpr int finds = O_PATH | O_DIRECTORY | O_CLOEXEC;
constexpr std::size_t part_bytes = std::size_t{64} << 10;

std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::vector<std::string> parts_of(std::string_view path) {
  std::vector<std::string> out;
  while (!path.empty()) {
    const std::size_t size = std::min(path.find('/'), path.size());
    if (const auto part = path.substr(0, size); !part.empty() && part != ".") out.emplace_back(part);
    path.remove_prefix(std::min(size + 1, path.size()));
  }
  return out;
}

}  // namespace

result<folder_entry> folder_entry::at(const std::string& path) {
  const int folder = ::open(folder_of(path).c_str(), finds);
  if (folder < 0) return failure{errc::io_error, path + ": " + errno_text()};
  return folder_entry(path, name_of(path), folder);
}

result<folder_entry> folder_entry::of_file(const std::string& path) {
  std::error_code error;
  const auto real = std::filesystem::canonical(path, error);
  if (error) return failure{errc::io_error, path + ": " + error.message()};
  REDLINE_TRY_ASSIGN(folder_entry found, at(real.string()));
  found.path_ = path;
  return found;
}

result<folder_entry> folder_entry::beneath(const std::string& folder, const std::string& relative) {
  const std::string path = (std::filesystem::path(folder) / relative).lexically_normal().string();
  const auto parts = parts_of(relative);
  const bool leads_out = relative.starts_with('/') || std::find(parts.begin(), parts.end(), "..") != parts.end();
  if (parts.empty() || leads_out) return failure{errc::invalid_argument, path + " is not below " + folder};
  int at = ::open(folder.c_str(), finds);
  if (at < 0) return failure{errc::io_error, folder + ": " + errno_text()};
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    const int next = ::openat(at, parts[i].c_str(), finds | O_NOFOLLOW);
    const int why = errno;
    ::close(at);
    if (next < 0) {
      // O_PATH finds a symbolic link, which is not a folder.
      const bool is_link = why == ENOTDIR || why == ELOOP;
      return failure{is_link ? errc::invalid_argument : errc::io_error,
                     path + ": '" + parts[i] + "' " +
                         (is_link ? "is a symbolic link or not a folder"
                                  : "cannot be opened: " + std::system_category().message(why))};
    }
    at = next;
  }
  return folder_entry(path, parts.back(), at);
}

folder_entry::~folder_entry() {
  if (folder_ >= 0) ::close(folder_);
}

result<folder_entry::content> folder_entry::read(std::size_t bytes_max) const {
  const auto refuse = [&](const std::string& why) { return failure{errc::file_unreadable, path_ + ": " + why}; };
  // Without O_NONBLOCK, opening a pipe would wait for a writer.
  const int descriptor = ::openat(folder_, name_.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) return refuse("cannot be read: " + errno_text());
  content out;
  struct stat info {};
  ssize_t count = -1;
  if (::fstat(descriptor, &info) == 0 && S_ISREG(info.st_mode)) {
    out.identity = {info.st_dev, info.st_ino};
    do {
      const std::size_t had = out.bytes.size();
      out.bytes.resize(had + std::min(part_bytes, bytes_max - had));
      count = ::read(descriptor, out.bytes.data() + had, out.bytes.size() - had);
      out.bytes.resize(had + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    } while (count > 0 || (count < 0 && errno == EINTR));
  } else {
    errno = 0;
  }
  const std::string why = errno == 0 ? "expected a regular file" : "cannot be read: " + errno_text();
  ::close(descriptor);
  if (count < 0) return refuse(why);
  return out;
}

}  // namespace redline
