#include "kernels/memory.hpp"

#include <sys/mman.h>

#include <new>

namespace redline::kernels {

memory_block::memory_block(std::size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  // Not reserved: a KV pool may be sized for the worst case and is filled slowly.
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) throw std::bad_alloc();
  constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;
  if (bytes >= huge_page_bytes) madvise(at, bytes, MADV_HUGEPAGE);  // advice only
  data_ = static_cast<std::byte*>(at);
}

memory_block::~memory_block() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

}  // namespace redline::kernels
