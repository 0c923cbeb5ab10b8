#pragma once

#include <memory>

namespace prometheus {
class Registry;
}

namespace redline::actors {

/// What every exporter says of its process, under the names that dashboards know: process_cpu_seconds_total and others.
class process_series {
 public:
  explicit process_series(prometheus::Registry& registry);
  ~process_series();
  /// Reads /proc/self. What cannot be read stays as it was.
  void refresh();

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace redline::actors
