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

/// What became of spans: sent to a collector, without a place in the queue, or given up after it was tried to send
/// them.
struct span_counts {
  std::uint64_t exported = 0, dropped = 0, failed = 0;
};

/// Ended spans on their way to who exports them. Safe from any thread; waits for nobody: what finds the queue full is
/// counted and dropped.
class tracer {
 public:
  static constexpr std::size_t queue_spans_max = 4096;
  /// root_ratio: the share of traces that begin here which is recorded, 0 to 1.
  explicit tracer(std::size_t spans_max = queue_spans_max, double root_ratio = 1);

  /// Whether a trace that begins here is recorded, by its id alone: by OpenTelemetry's consistent sampling, so
  /// processes with one ratio choose the same traces, and those of a smaller ratio are among those of a larger one.
  [[nodiscard]] bool samples(const span_context& root) const;

  void push(span&& ended);
  /// The oldest spans, at most `count_max`, once there are so many, or some when `patience` has passed or `stop` was
  /// called.
  std::vector<span> take(std::size_t count_max, std::chrono::milliseconds patience);
  /// `take` waits no more.
  void stop();
  [[nodiscard]] bool is_stopped() const;

  void note_exported(std::uint64_t count) { exported_ += count; }
  void note_failed(std::uint64_t count) { failed_ += count; }
  [[nodiscard]] span_counts counts() const { return {exported_, dropped_, failed_}; }

 private:
  const std::size_t spans_max_;
  const std::uint64_t least_sampled_;  // of an id's low 56 bits
  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<span> queue_;
  std::size_t wanted_ = 0;  // by who waits in `take`
  bool stopped_ = false;
  std::atomic<std::uint64_t> exported_ = 0, dropped_ = 0, failed_ = 0;
};

/// A span that has not ended. An empty one costs nothing and takes all calls; who would make values for it asks first.
/// One that is destroyed before its end has failed.
class open_span {
 public:
  open_span() = default;
  /// Of no tracer, or without a parent, empty.
  open_span(const std::shared_ptr<tracer>& to, environment& env, const span_context& parent, std::string name,
            span_kind kind = span_kind::internal);
  /// The first of its trace, whose id is drawn; empty if that is not sampled.
  static open_span root(const std::shared_ptr<tracer>& to, environment& env, std::string name, span_kind kind);
  open_span(open_span&&) noexcept = default;
  open_span& operator=(open_span&& other) noexcept;
  ~open_span();

  explicit operator bool() const { return state_ != nullptr; }
  /// For children, here and in other processes.
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
