#include "actors/http/metrics/process_status.hpp"

#include <dirent.h>
#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <limits>
#include <string>

namespace redline::actors {
namespace {

using prometheus::Counter, prometheus::Gauge;

double seconds_of(const timeval& t) { return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6; }

double count_descriptors() {
  DIR* const folder = ::opendir("/proc/self/fd");
  if (folder == nullptr) return 0;
  double count = -3;  // ".", ".." and the folder itself
  while (::readdir(folder) != nullptr) ++count;
  ::closedir(folder);
  return count;
}

/// Unix time at which the process began; 0 if it cannot be read. See proc(5).
double read_start_seconds() {
  std::ifstream own("/proc/self/stat"), system("/proc/stat");
  std::string line;
  std::getline(own, line);
  const auto after_name = line.rfind(')');
  if (after_name == std::string::npos) return 0;
  constexpr int ticks_field = 22, first_after_name = 3;
  std::size_t at = after_name + 1;
  for (int i = first_after_name; i < ticks_field && at != std::string::npos; ++i) at = line.find(' ', at + 1);
  if (at == std::string::npos) return 0;
  const double ticks = std::strtod(line.c_str() + at, nullptr);
  for (std::string name; system >> name; std::getline(system, line)) {
    double boot = 0;
    if (name == "btime" && system >> boot) return boot + ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
  }
  return 0;
}

}  // namespace

struct process_series::state {
  prometheus::Registry& registry;

  Gauge& gauge(const char* name, const char* help) {
    return prometheus::BuildGauge().Name(name).Help(help).Register(registry).Add({});
  }
  Counter& cpu = prometheus::BuildCounter()
                     .Name("process_cpu_seconds_total")
                     .Help("CPU time of the process, user and system")
                     .Register(registry)
                     .Add({});
  Gauge& resident = gauge("process_resident_memory_bytes", "Resident memory of the process");
  Gauge& address_space = gauge("process_virtual_memory_bytes", "Address space of the process");
  Gauge& open_files = gauge("process_open_fds", "Open file descriptors");
  Gauge& files_max = gauge("process_max_fds", "Maximum number of open file descriptors");
  Gauge& began = gauge("process_start_time_seconds", "Unix time at which the process started");
};

process_series::process_series(prometheus::Registry& registry) : state_(new state{registry}) {
  state_->began.Set(read_start_seconds());
}
process_series::~process_series() = default;

void process_series::refresh() {
  auto& s = *state_;
  rusage used{};
  if (::getrusage(RUSAGE_SELF, &used) == 0) {
    const double now = seconds_of(used.ru_utime) + seconds_of(used.ru_stime);
    if (now > s.cpu.Value()) s.cpu.Increment(now - s.cpu.Value());
  }
  std::ifstream statm("/proc/self/statm");
  double all = 0, resident = 0;
  if (statm >> all >> resident) {
    const auto page = static_cast<double>(::sysconf(_SC_PAGESIZE));
    s.address_space.Set(all * page);
    s.resident.Set(resident * page);
  }
  s.open_files.Set(count_descriptors());
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) {
    s.files_max.Set(files.rlim_cur == RLIM_INFINITY ? std::numeric_limits<double>::infinity()
                                                    : static_cast<double>(files.rlim_cur));
  }
}

}  // namespace redline::actors
