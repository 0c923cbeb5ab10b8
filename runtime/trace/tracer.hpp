#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/trace/span.hpp"

namespace redline::trace {

/// The outcome of spans: sent to a collector, dropped because the queue was full, or given up after failed attempts to
/// send them.
struct span_counts {
  std::uint64_t exported = 0, dropped = 0, failed = 0;
};

/// A queue of ended spans for the exporter. Thread-safe and never waits: spans that find the queue full are counted and
/// dropped.
class tracer {
 public:
  static constexpr std::size_t queue_spans_max = 4096;
  /// root_ratio: the fraction of the traces that begin here that is recorded, 0 to 1.
  explicit tracer(std::size_t spans_max = queue_spans_max, double root_ratio = 1);

  /// Whether a trace that begins here is recorded, decided by its id alone. It uses OpenTelemetry's consistent
  /// sampling: processes with the same ratio choose the same traces, and those of a smaller ratio are among those of a
  /// larger one.
  [[nodiscard]] bool samples(const span_context& root) const;

  void push(span&& ended);
  /// Waits for `count_max` spans and returns the oldest ones. Returns fewer, possibly none, if `patience` has passed or
  /// `stop` was called.
  std::vector<span> take(std::size_t count_max, std::chrono::milliseconds patience);
  /// Makes `take` return without waiting.
  void stop();
  [[nodiscard]] bool is_stopped() const;

  void note_exported(std::uint64_t count) { exported_ += count; }
  void note_failed(std::uint64_t count) { failed_ += count; }
  [[nodiscard]] span_counts counts() const { return {exported_, dropped_, failed_}; }

 private:
  const std::size_t spans_max_;
  const std::uint64_t least_sampled_;  // threshold for an id's low 56 bits
  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<span> queue_;
  std::size_t wanted_ = 0;  // number of spans that the caller waiting in `take` wants
  bool stopped_ = false;
  std::atomic<std::uint64_t> exported_ = 0, dropped_ = 0, failed_ = 0;
};

/// A span that has not ended. An empty one costs nothing and accepts all calls; a caller that would have to compute
/// values should check first. If it is destroyed before its end, it counts as failed.
class open_span {
 public:
  open_span() = default;
  /// Empty without a tracer or a parent.
  open_span(const std::shared_ptr<tracer>& to, environment& env, const span_context& parent, std::string name,
            span_kind kind = span_kind::internal);
  /// Begins a trace with a random id; empty if that is not sampled.
  static open_span root(const std::shared_ptr<tracer>& to, environment& env, std::string name, span_kind kind);
  open_span(open_span&&) noexcept = default;
  open_span& operator=(open_span&& other) noexcept;
  ~open_span();

  explicit operator bool() const { return state_ != nullptr; }
  /// The context for children, here and in other processes.
  [[nodiscard]] span_context context() const { return state_ ? state_->content.where : span_context{}; }
  void set(std::string_view key, attribute_value value);
  void add_event(std::string_view name, std::vector<attribute> attributes);
  void fail(std::string problem);
  void end();

 private:
  struct state {
    std::shared_ptr<tracer> to;
    environment& env;
    span content;
  };
  std::unique_ptr<state> state_;
};

}  // namespace redline::trace
