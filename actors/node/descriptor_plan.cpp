#include "actors/node/descriptor_plan.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <string>

namespace redline::actors {
namespace {

constexpr std::uint64_t connections_min = 16;

}  // namespace

std::uint64_t raise_descriptor_limit() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return 1024;
  if (files.rlim_cur < files.rlim_max) {
    rlimit raised = files;
    raised.rlim_cur = raised.rlim_max;
    if (::setrlimit(RLIMIT_NOFILE, &raised) == 0) files = raised;
  }
  return files.rlim_cur;
}

std::uint64_t count_open_descriptors() {
  std::error_code ec;
  std::uint64_t count = 0;
  for (auto at = std::filesystem::directory_iterator("/proc/self/fd", ec); !ec && at != decltype(at)();
       at.increment(ec)) {
    ++count;
  }
  return count;
}

result<std::size_t> plan_connections(std::size_t wanted, std::uint64_t limit, std::uint64_t open) {
  const std::uint64_t taken = open + descriptors_reserved;
  const auto least = std::min<std::uint64_t>(wanted, connections_min);
  if (limit < taken + least) {
    return failure{errc::io_error, "expected to be able to open at least " + std::to_string(taken + least) +
                                       " files and sockets, found a limit of " + std::to_string(limit) +
                                       ": raise the limit (ulimit -n, or LimitNOFILE in a systemd unit)"};
  }
  return static_cast<std::size_t>(std::min<std::uint64_t>(wanted, limit - taken));
}

}  // namespace redline::actors
