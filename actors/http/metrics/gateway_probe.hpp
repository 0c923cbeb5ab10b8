#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/http/metrics/vllm_metrics.hpp"
#include "actors/messages/session_messages.hpp"
#include "actors/messages/status_messages.hpp"
#include "runtime/actor/handler_times.hpp"
#include "runtime/actor/undelivered.hpp"
#include "runtime/base/environment.hpp"
#include "runtime/trace/tracer.hpp"
#include "transport/http_wire.hpp"
#include "transport/zmq/bridge_counts.hpp"

namespace redline::actors {

/// How a request ended.
enum class request_end : std::uint8_t { stop, length, error, abort, last_ };

/// The calls to edit sessions.
enum class edit_verb : std::uint8_t {
  open,
  show,
  show_file,
  put_file,
  patch_file,
  drop_file,
  complete,
  edit,
  close,
  last_,
};

/// The gateway's metrics, with one function per event. All series exist from the start, so that an event needs no
/// lookup and a graph has no gap.
class gateway_probe {
 public:
  gateway_probe();
  ~gateway_probe();

  /// Counts the answers on this path from now on. path: the route's path, not the one that a client sent.
  void add_route(std::string_view path);
  void answered(std::string_view path, unsigned status);
  /// code: one of Redline's codes, or empty.
  void refused(unsigned status, const std::string& code);
  void first_text(microseconds since_arrival);
  /// Records `count` tokens and the time since the tokens before them.
  void next_tokens(std::size_t count, microseconds since_last);
  void tokens_generated(std::size_t count);
  void answer_finished(const session_stats& stats);
  void prompt_read(std::uint64_t tokens);
  void answer_read(std::uint64_t tokens);
  void request_finished(request_end how, microseconds since_arrival);
  void stream_resumed();
  /// Sums over all answers so far.
  struct totals {
    struct of_source {
      std::string_view name;
      std::uint64_t drafted = 0, accepted = 0;
    };
    std::uint64_t tokens = 0, drafted = 0, accepted = 0;
    std::vector<of_source> sources{};
  };
  [[nodiscard]] totals read_totals() const;
  void edit_session_opened();
  void edit_call(edit_verb verb);

  /// The state at the moment of a scrape. scheduler: its last report, or null.
  struct state {
    bool ready = false;
    std::size_t edit_sessions = 0;
    std::size_t edit_bytes = 0;
    std::uint64_t edit_bytes_refused = 0;
    std::size_t request_bytes = 0;
    std::uint64_t request_bytes_refused = 0;
    std::size_t answers_running = 0;
    std::size_t name_conflicts = 0;
    const scheduler_report* scheduler = nullptr;
    actor::undelivered_counts undelivered;
    transport::bridge_counts refused_by_bridge{};
    transport::refusal_counts refused_by_front{};  // refused by the HTTP server before a request existed
    std::vector<actor::handler_times::reading> handlers;
    trace::span_counts spans{};
    std::optional<vllm_facts> as_vllm;  // repeats the metrics under vLLM's names
  };
  /// Copies the state into the series.
  void look(const state& now);
  /// Writes the series as Prometheus text 0.0.4. Takes milliseconds; callable on any thread.
  [[nodiscard]] std::string write(const std::optional<vllm_facts>& as_vllm) const;
  /// Calls `look` and `write`.
  [[nodiscard]] std::string text(const state& now) {
    look(now);
    return write(now.as_vllm);
  }
  static constexpr std::string_view content_type = "text/plain; version=0.0.4; charset=utf-8";

 private:
  struct series;
  std::unique_ptr<series> series_;
};

}  // namespace redline::actors
