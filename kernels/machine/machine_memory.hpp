#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

namespace redline::kernels {

/// The memory of this machine that this process may use at the moment.
struct machine_memory {
  std::uint64_t total_bytes = 0;
  std::uint64_t available_bytes = 0;  // without swapping out other processes
  std::uint64_t swap_bytes = 0;       // 0 means off
  std::uint64_t cgroup_bytes = 0;     // the limit; 0 means none
  std::string huge_pages;             // "always", "madvise" or "never"; "unknown" if the system does not say

  /// What a program can use at most, and what one started now can use.
  [[nodiscard]] std::uint64_t limit_bytes() const { return within_cgroup(total_bytes); }
  [[nodiscard]] std::uint64_t usable_bytes() const { return within_cgroup(available_bytes); }

 private:
  [[nodiscard]] std::uint64_t within_cgroup(std::uint64_t bytes) const {
    return cgroup_bytes == 0 ? bytes : std::min(bytes, cgroup_bytes);
  }
};
machine_memory read_machine_memory();

/// This process's resident memory, and its part in transparent huge pages; zeros if the system does not say.
struct held_memory {
  std::uint64_t resident_bytes = 0;
  std::uint64_t huge_bytes = 0;
};
/// Walks the process's page tables, which takes milliseconds.
held_memory read_held_memory();

/// The word in brackets in "always [madvise] never"; "unknown" if there is none.
std::string chosen_word(const std::string& setting);

}  // namespace redline::kernels
