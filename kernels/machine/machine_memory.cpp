#include "kernels/machine/machine_memory.hpp"

#include <unistd.h>

#include <fstream>
#include <limits>

#include "kernels/machine/cgroup.hpp"

namespace redline::kernels {

std::string chosen_word(const std::string& setting) {
  const auto open = setting.find('[');
  const auto close = setting.find(']', open == std::string::npos ? 0 : open);
  if (open == std::string::npos || close == std::string::npos) return "unknown";
  return setting.substr(open + 1, close - open - 1);
}

held_memory read_held_memory() {
  held_memory held;
  std::ifstream rollup("/proc/self/smaps_rollup");
  std::string line;
  std::getline(rollup, line);  // the range
  std::string key;
  for (std::uint64_t kib = 0; rollup >> key >> kib; rollup.ignore(std::numeric_limits<std::streamsize>::max(), '\n')) {
    if (key == "Rss:") held.resident_bytes = kib << 10;
    if (key == "AnonHugePages:") held.huge_bytes = kib << 10;
  }
  return held;
}

machine_memory read_machine_memory() {
  machine_memory m;
  m.total_bytes =
      static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGE_SIZE));
  m.available_bytes = m.total_bytes;    // unless the system reports less
  std::ifstream info("/proc/meminfo");  // "MemAvailable:   16384256 kB"
  std::string key;
  for (std::uint64_t kib = 0; info >> key >> kib; info.ignore(std::numeric_limits<std::streamsize>::max(), '\n')) {
    if (key == "MemAvailable:") m.available_bytes = kib << 10;
    if (key == "SwapTotal:") m.swap_bytes = kib << 10;
  }
  std::ifstream huge("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string setting;
  std::getline(huge, setting);
  m.huge_pages = chosen_word(setting);
  m.cgroup_bytes = cgroup_memory_limit();
  return m;
}

}  // namespace redline::kernels
