#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.hpp"

namespace redline::actors::cli {

/// The state of a server, from an event of /v1/redline/status. Texts are reduced to printable ASCII.
struct server_status {
  struct worker {
    std::string id, name;
    bool ready = false;
    double running = 0, waiting = 0, pages = 0, pages_held = 0, preempted = 0, cost_error = 0, batch_fill = 0;
    double batches = 0, rows = 0, busy_us = 0;  // totals
  };
  struct source {
    std::string name;
    double drafted = 0, accepted = 0;
  };
  std::string version, models;
  std::vector<std::string> conflicts;  // conflicting model names
  bool ready = false;
  double uptime_seconds = 0, running = 0, waiting = 0, edit_sessions = 0;
  double tokens = 0, drafted = 0, accepted = 0;  // totals
  std::vector<source> sources;
  std::vector<worker> workers;

  static result<server_status> parse(const std::string& event);
};

enum class worker_order : std::uint8_t { name, running, pages, rate, last_ };
[[nodiscard]] std::string_view name_of(worker_order order);

/// Shows a working server as lines of text, from its events. Totals become rates between consecutive events.
class server_view {
 public:
  static constexpr std::size_t workers_max = 256;
  static constexpr std::size_t conflicts_max = 4;

  /// seconds: on any clock.
  void take(server_status now, double seconds);
  [[nodiscard]] bool has_rates() const { return before_.has_value(); }
  /// At most `height` lines, none longer than `width`. 0 means no limit.
  [[nodiscard]] std::vector<std::string> lines(std::size_t width, std::size_t height, worker_order order) const;
  /// Explains the words in `lines`, within the same bounds.
  [[nodiscard]] static std::vector<std::string> legend(std::size_t width, std::size_t height);
  /// A log line, and the names of its columns.
  [[nodiscard]] std::string line() const;
  static constexpr std::string_view line_head =
      " tokens/s  running  waiting  pages held  accepted  passes/s  rows/pass  busy";

 private:
  struct totals {
    double batches = 0, rows = 0, busy_us = 0;
  };
  struct rates {
    double passes = 0, rows_per_pass = 0, busy = 0;
  };
  [[nodiscard]] rates rates_of(const totals& now, const totals& before) const;
  [[nodiscard]] rates rates_of(const server_status::worker& w) const;
  [[nodiscard]] rates all_rates() const;
  [[nodiscard]] double tokens_per_second() const;
  [[nodiscard]] std::vector<std::string> table(std::size_t width, worker_order order) const;

  std::optional<server_status> now_, before_;
  double seconds_ = 0;  // between the two states
  double at_ = 0;
};

}  // namespace redline::actors::cli
