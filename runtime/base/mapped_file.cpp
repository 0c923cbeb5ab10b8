#include "runtime/base/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <mutex>

#include "runtime/base/errno_text.hpp"

namespace redline {
namespace {

failure unreadable(const std::string& path, const std::string& why) {
  return {errc::file_unreadable, path + ": " + why};
}

struct descriptor_owner {
  int descriptor;
  ~descriptor_owner() { ::close(descriptor); }
};

std::int64_t written_ns(const struct stat& status) {
  return std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
}

// Reading a mapped page that the file lost raises SIGBUS. The handler may only read lock-free atomics and write.

struct guarded_range {
  std::atomic<std::uintptr_t> begin{0};  // 0 means free
  std::atomic<std::uintptr_t> end{0};
  char text[512] = {};  // the message to print, with a line feed
  std::size_t text_bytes = 0;
};
constexpr std::size_t guards_max = 256;  // enough for models and the shards of one that is converted
guarded_range guards[guards_max];
std::mutex guards_change;
constexpr int exit_config = 78;

void explain_lost_page(int, siginfo_t* info, void*) {
  const auto at = reinterpret_cast<std::uintptr_t>(info->si_addr);
  for (const guarded_range& g : guards) {
    const std::uintptr_t begin = g.begin.load(std::memory_order_acquire);
    if (begin == 0 || at < begin || at >= g.end.load(std::memory_order_relaxed)) continue;
    (void)!::write(STDERR_FILENO, g.text, g.text_bytes);
    ::_exit(exit_config);
  }
  ::signal(SIGBUS, SIG_DFL);  // another cause: repeating the instruction ends the process
}

/// Beyond guards_max, files are not guarded: a lost page then ends the process without a message.
std::size_t add_guard(std::span<const std::byte> bytes, const std::string& path) {
  const std::lock_guard lock(guards_change);
  static const bool installed = [] {
    struct sigaction action {};
    action.sa_sigaction = explain_lost_page;
    action.sa_flags = SA_SIGINFO;
    return ::sigaction(SIGBUS, &action, nullptr) == 0;
  }();
  (void)installed;
  for (std::size_t i = 0; i < guards_max; ++i) {
    guarded_range& g = guards[i];
    if (g.begin != 0) continue;
    const int length =
        std::snprintf(g.text, sizeof g.text,
                      "\nredline: %.300s: expected %zu bytes as when it was opened, found it truncated or "
                      "its disk failing; replace it with a complete file and restart\n",
                      path.c_str(), bytes.size());
    g.text_bytes = std::min<std::size_t>(sizeof g.text - 1, static_cast<std::size_t>(std::max(length, 0)));
    const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data());
    // The page at the file's end belongs to the file.
    const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    g.end = (begin + bytes.size() + page - 1) / page * page;
    g.begin.store(begin, std::memory_order_release);
    return i;
  }
  return guards_max;
}

void remove_guard(std::size_t index) {
  const std::lock_guard lock(guards_change);
  if (index < guards_max) guards[index].begin = 0;
}

}  // namespace

result<std::unique_ptr<mapped_file>> mapped_file::open(const std::string& path) {
  // Without O_NONBLOCK a named pipe would wait for a writer before it can be refused.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return unreadable(path, "cannot be opened: " + errno_text());
  const descriptor_owner close_at_end{descriptor};
  std::unique_ptr<mapped_file> file(new mapped_file(path));

  struct stat status {};
  if (::fstat(descriptor, &status) != 0) return unreadable(path, "cannot be inspected: " + errno_text());
  if (!S_ISREG(status.st_mode)) return unreadable(path, "is not a regular file");
  file->device_ = status.st_dev;
  file->inode_ = status.st_ino;
  file->written_ns_ = written_ns(status);
  const auto size_bytes = static_cast<std::size_t>(status.st_size);
  if (size_bytes == 0) return file;
  void* mapping = ::mmap(nullptr, size_bytes, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (mapping == MAP_FAILED) return unreadable(path, "cannot be mapped: " + errno_text());
  file->bytes_ = {static_cast<const std::byte*>(mapping), size_bytes};
  file->guard_ = add_guard(file->bytes_, path);
  return file;
}

mapped_file::~mapped_file() {
  if (bytes_.empty()) return;
  remove_guard(guard_);
  ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

result<void> mapped_file::check_unchanged() const {
  struct stat status {};
  if (::stat(path_.c_str(), &status) != 0 || status.st_dev != device_ || status.st_ino != inode_) return {};
  const auto size_bytes = static_cast<std::size_t>(status.st_size);
  if (size_bytes != bytes_.size()) {
    return unreadable(path_, "expected " + std::to_string(bytes_.size()) + " bytes as when it was opened, found " +
                                 std::to_string(size_bytes) + ": the file was changed while it was read");
  }
  if (written_ns(status) != written_ns_) return unreadable(path_, "was written while it was read: try again");
  return {};
}

void mapped_file::drop_from_memory(std::span<const std::byte> part) const {
  // Drops only whole pages inside the part, because the pages at its ends are shared with adjacent data.
  const auto page_bytes = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(part.data());
  const std::uintptr_t first = (begin + page_bytes - 1) / page_bytes * page_bytes;
  const std::uintptr_t last = (begin + part.size()) / page_bytes * page_bytes;
  if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

}  // namespace redline
