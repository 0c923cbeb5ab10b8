#include "runtime/base/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>

namespace redline {
namespace {

failure unreadable(const std::string& path, const std::string& why) {
  return {errc::file_unreadable, path + ": " + why};
}
std::string errno_text() { return std::system_category().message(errno); }

struct descriptor_owner {
  int descriptor;
  ~descriptor_owner() { ::close(descriptor); }
};

}  // namespace

result<std::unique_ptr<mapped_file>> mapped_file::open(const std::string& path) {
  // Without O_NONBLOCK a named pipe would wait for a writer before it can be refused.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return unreadable(path, "cannot be opened: " + errno_text());
  const descriptor_owner close_at_end{descriptor};

  struct stat status {};
  if (::fstat(descriptor, &status) != 0) return unreadable(path, "cannot be inspected: " + errno_text());
  if (!S_ISREG(status.st_mode)) return unreadable(path, "is not a regular file");
  const auto size_bytes = static_cast<std::size_t>(status.st_size);
  if (size_bytes == 0) return std::unique_ptr<mapped_file>(new mapped_file({}));
  void* mapping = ::mmap(nullptr, size_bytes, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (mapping == MAP_FAILED) return unreadable(path, "cannot be mapped: " + errno_text());
  return std::unique_ptr<mapped_file>(new mapped_file({static_cast<const std::byte*>(mapping), size_bytes}));
}

mapped_file::~mapped_file() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

void mapped_file::drop_from_memory(std::span<const std::byte> part) const {
  // Only whole pages inside of the part: its neighbours share the pages at both ends.
  const auto page_bytes = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(part.data());
  const std::uintptr_t first = (begin + page_bytes - 1) / page_bytes * page_bytes;
  const std::uintptr_t last = (begin + part.size()) / page_bytes * page_bytes;
  if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

}  // namespace redline
