#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

namespace redline::kernels {

/// The memory of this machine as this process may use it, now.
struct machine_memory {
  std::uint64_t total_bytes = 0;
  std::uint64_t available_bytes = 0;  // without swapping others out
  std::uint64_t swap_bytes = 0;       // 0: off
  std::uint64_t cgroup_bytes = 0;     // the limit; 0: none
  std::string huge_pages;             // "always", "madvise" or "never"; "unknown" where the system does not say

  /// What a program can hold at most, and what one started now.
  [[nodiscard]] std::uint64_t limit_bytes() const { return within_cgroup(total_bytes); }
  [[nodiscard]] std::uint64_t usable_bytes() const { return within_cgroup(available_bytes); }

 private:
  [[nodiscard]] std::uint64_t within_cgroup(std::uint64_t bytes) const {
    return cgroup_bytes == 0 ? bytes : std::min(bytes, cgroup_bytes);
  }
};
machine_memory read_machine_memory();

/// What of this process's memory is there, and lies in transparent huge pages; zeros where the system does not say.
struct held_memory {
  std::uint64_t resident_bytes = 0;
  std::uint64_t huge_bytes = 0;
};
/// Walks the process's page tables: milliseconds.
held_memory read_held_memory();

/// The word in brackets in "always [madvise] never"; "unknown" without one.
std::string chosen_word(const std::string& setting);

}  // namespace redline::kernels
