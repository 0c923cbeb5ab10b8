#pragma once

#include <memory>

namespace prometheus {
class Registry;
}

namespace redline::actors {

/// The process metrics that every exporter has, under the names that dashboards use, such as process_cpu_seconds_total.
class process_series {
 public:
  explicit process_series(prometheus::Registry& registry);
  ~process_series();
  /// Reads /proc/self. A value that cannot be read keeps its last state.
  void refresh();

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace redline::actors
