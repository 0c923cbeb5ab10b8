#include "kernels/machine/cgroup.hpp"

#include <algorithm>
#include <fstream>
#include <initializer_list>
#include <sstream>

namespace redline::kernels {
namespace {

constexpr const char* mount_point = "/sys/fs/cgroup";

std::string read_text(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream out;
  if (in) out << in.rdbuf();
  return out.str();
}

/// The limit that one group's directory sets, 0 for none.
using limit_reader = std::uint64_t (*)(const std::string& directory);

std::uint64_t whole_cpus(double quota, double period) {
  if (!(quota > 0) || !(period > 0)) return 0;
  return static_cast<std::uint64_t>(std::clamp((quota + period - 1) / period, 1.0, 65535.0));
}

std::uint64_t cpus_of_version2(const std::string& directory) {
  std::istringstream text(read_text(directory + "/cpu.max"));  // "max 100000" or "150000 100000"
  double quota = 0;
  double period = 0;
  return text >> quota >> period ? whole_cpus(quota, period) : 0;
}

std::uint64_t cpus_of_version1(const std::string& directory) {
  std::istringstream a(read_text(directory + "/cpu.cfs_quota_us"));
  std::istringstream b(read_text(directory + "/cpu.cfs_period_us"));
  double quota = 0;
  double period = 0;
  return a >> quota && b >> period ? whole_cpus(quota, period) : 0;
}

std::uint64_t bytes_in(const std::string& path) {
  std::istringstream text(read_text(path));  // "max" or a number
  std::uint64_t bytes = 0;
  // Version 1 represents no limit by the largest number of whole pages below 2^63.
  return text >> bytes && bytes < std::uint64_t{1} << 62 ? bytes : 0;
}

std::uint64_t memory_of_version2(const std::string& directory) { return bytes_in(directory + "/memory.max"); }
std::uint64_t memory_of_version1(const std::string& directory) {
  return bytes_in(directory + "/memory.limit_in_bytes");
}

/// One controller: its name in version 1, where that is mounted, and how its limits are read.
struct controller {
  std::string name;
  std::initializer_list<const char*> mounts;
  limit_reader version1;
  limit_reader version2;
};

void tighten(std::uint64_t& limit, std::uint64_t other) {
  if (other != 0 && (limit == 0 || other < limit)) limit = other;
}

/// Every group from `path` up to the root counts, because a parent may have the tightest limit. Inside a container the
/// path may not exist below the mount; then its root does.
std::uint64_t limit_along(const std::string& mount, std::string path, limit_reader read) {
  std::uint64_t limit = 0;
  while (true) {
    tighten(limit, read(mount + path));
    const auto slash = path.find_last_of('/');
    if (path.empty() || slash == std::string::npos) return limit;
    path.resize(slash);
  }
}

std::uint64_t tightest(const controller& c, const std::string& proc_self_cgroup, const std::string& root) {
  std::uint64_t limit = 0;
  std::istringstream lines(proc_self_cgroup);
  for (std::string line; std::getline(lines, line);) {  // "0::/a/b" or "4:cpu,cpuacct:/a/b"
    const auto first = line.find(':');
    const auto second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    std::string path = line.substr(second + 1);
    if (path == "/") path.clear();
    if (controllers == ",,") {
      tighten(limit, limit_along(root, path, c.version2));
      tighten(limit, limit_along(root + "/unified", path, c.version2));
    } else if (controllers.find("," + c.name + ",") != std::string::npos) {
      for (const char* mount : c.mounts) tighten(limit, limit_along(root + mount, path, c.version1));
    }
  }
  return limit;
}

}  // namespace

std::uint32_t cgroup_cpu_quota(const std::string& proc_self_cgroup, const std::string& root) {
  const controller cpu{"cpu", {"/cpu", "/cpu,cpuacct"}, cpus_of_version1, cpus_of_version2};
  return static_cast<std::uint32_t>(tightest(cpu, proc_self_cgroup, root));
}

std::uint64_t cgroup_memory_limit(const std::string& proc_self_cgroup, const std::string& root) {
  const controller memory{"memory", {"/memory"}, memory_of_version1, memory_of_version2};
  return tightest(memory, proc_self_cgroup, root);
}

std::uint32_t cgroup_cpu_quota() { return cgroup_cpu_quota(read_text("/proc/self/cgroup"), mount_point); }
std::uint64_t cgroup_memory_limit() { return cgroup_memory_limit(read_text("/proc/self/cgroup"), mount_point); }

}  // namespace redline::kernels
