#pragma once

#include <cstdint>
#include <string>

namespace redline::kernels {

/// The tightest limits of the cgroups named in the text of /proc/self/cgroup, looked up below `root` (/sys/fs/cgroup),
/// versions 1 and 2. 0 for none.
std::uint32_t cgroup_cpu_quota(const std::string& proc_self_cgroup, const std::string& root);     // CPUs, rounded up
std::uint64_t cgroup_memory_limit(const std::string& proc_self_cgroup, const std::string& root);  // bytes

/// Limits for this process.
std::uint32_t cgroup_cpu_quota();
std::uint64_t cgroup_memory_limit();

}  // namespace redline::kernels
