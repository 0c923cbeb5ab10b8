#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redline::actors {

/// Only grows. Any thread may add.
class counter {
 public:
  void add(double amount = 1) {
    if (amount > 0) value_.fetch_add(amount, std::memory_order_relaxed);
  }
  [[nodiscard]] double value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_{0};
};

/// Goes up and down. Any thread may change it.
class gauge {
 public:
  void set(double value) { value_.store(value, std::memory_order_relaxed); }
  void add(double amount = 1) { value_.fetch_add(amount, std::memory_order_relaxed); }
  void subtract(double amount = 1) { value_.fetch_sub(amount, std::memory_order_relaxed); }
  [[nodiscard]] double value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_{0};
};

/// Counts observations in fixed buckets. Any thread may observe. A reader may see an observation in its bucket before
/// it is in the sum, but `_count` always equals the last bucket.
class histogram {
 public:
  /// bounds: upper ends of the buckets, inclusive, ascending; one bucket more takes the rest.
  explicit histogram(std::span<const double> bounds);

  void observe(double value);
  [[nodiscard]] std::span<const double> bounds() const { return bounds_; }
  /// Per bucket, not yet summed up; one more than bounds.
  [[nodiscard]] std::vector<std::uint64_t> counts() const;
  [[nodiscard]] double sum() const { return sum_.load(std::memory_order_relaxed); }

 private:
  std::vector<double> bounds_;
  std::unique_ptr<std::atomic<std::uint64_t>[]> counts_;
  std::atomic<double> sum_{0};
};

/// From a millisecond to ten minutes, for requests and their parts.
extern const std::vector<double> latency_buckets_seconds;
/// From ten microseconds to ten seconds, for steps of the engine.
extern const std::vector<double> step_buckets_seconds;
/// Powers of two up to 4096, for tokens and rows.
extern const std::vector<double> count_buckets;

using label = std::pair<std::string_view, std::string_view>;  // name, value

/// All metrics of a process, written out as Prometheus text 0.0.4. Asking for a metric takes a lock and a search, so
/// callers ask once and keep the reference, which is good as long as the registry. The same name with the same labels
/// is the same metric. Names carry the unit and, for counters, `_total`; the registry puts `redline_` in front. Bad
/// names, and one name used for two kinds or with two sets of label names, are our own bugs and end the process.
///
/// Label values may come from outside (a model's name), so their number is bounded: past series_max per name, further
/// values share one series whose label values are all "other".
class metrics_registry {
 public:
  explicit metrics_registry(std::size_t series_max = 256) : series_max_(series_max) {}

  counter& counter_of(std::string_view name, std::string_view help, std::initializer_list<label> labels = {});
  gauge& gauge_of(std::string_view name, std::string_view help, std::initializer_list<label> labels = {});
  /// The buckets of the first call with this name hold for all its series.
  histogram& histogram_of(std::string_view name, std::string_view help, std::span<const double> bounds,
                          std::initializer_list<label> labels = {});

  [[nodiscard]] std::string text() const;
  static constexpr std::string_view content_type = "text/plain; version=0.0.4; charset=utf-8";

 private:
  enum class kind : std::uint8_t { counter, gauge, histogram };
  struct series {
    std::vector<std::string> values;  // of the labels, in the family's order
    std::unique_ptr<counter> as_counter;
    std::unique_ptr<gauge> as_gauge;
    std::unique_ptr<histogram> as_histogram;
  };
  struct family {
    std::string name;  // with prefix
    std::string help;
    kind what = kind::counter;
    std::vector<std::string> label_names;
    std::vector<double> bounds;
    std::vector<std::unique_ptr<series>> all;
  };

  /// Both with the lock held.
  family& family_of(std::string_view name, std::string_view help, kind what, std::span<const double> bounds,
                    std::initializer_list<label> labels);
  series& series_of(family& in, std::initializer_list<label> labels);
  static void write(const family& one, std::string& out);

  std::size_t series_max_;
  mutable std::mutex mutex_;  // guards the lists, not the values
  std::vector<std::unique_ptr<family>> families_;
};

}  // namespace redline::actors
