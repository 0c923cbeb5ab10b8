#include "kernels/machine/memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <limits>
#include <new>

namespace redline::kernels {

memory_block::memory_block(std::size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;
  const bool huge = bytes >= huge_page_bytes;
  if (bytes > std::numeric_limits<std::size_t>::max() - 2 * huge_page_bytes) throw std::bad_alloc();
  // Linux aligns large mappings itself from 6.7 on; before, half of a block of a few MiB would use small pages.
  const std::size_t mapped = huge ? bytes + huge_page_bytes : bytes;
  // Not reserved: a KV pool may be sized for the worst case and is filled slowly.
  void* at = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) throw std::bad_alloc();
  auto* first = static_cast<std::byte*>(at);
  data_ = first;
  if (!huge) return;
  const auto past = reinterpret_cast<std::uintptr_t>(at) % huge_page_bytes;
  const std::size_t before = past == 0 ? 0 : huge_page_bytes - past;
  data_ = first + before;
  const auto page_bytes = static_cast<std::size_t>(sysconf(_SC_PAGE_SIZE));
  const std::size_t end = before + (bytes + page_bytes - 1) / page_bytes * page_bytes;
  if (before > 0) munmap(first, before);
  if (end < mapped) munmap(first + end, mapped - end);
  madvise(data_, bytes, MADV_HUGEPAGE);  // advice only
}

memory_block::~memory_block() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

}  // namespace redline::kernels
