#include "actors/http/metrics.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "runtime/base/assert.hpp"

namespace redline::actors {
namespace {

constexpr std::string_view prefix = "redline_";
constexpr std::string_view overflow_value = "other";

bool is_metric_name(std::string_view text) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !text.empty() && is_letter(text.front()) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

std::string text_of(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  char digits[40];
  return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
}

void append_escaped(std::string& out, std::string_view text, bool is_label) {
  for (const char c : text) {
    if (c == '\\') {
      out += "\\\\";
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '"' && is_label) {
      out += "\\\"";
    } else {
      out.push_back(c);
    }
  }
}

/// {a="1",le="2"}; nothing for no labels. `le` is left out when empty.
std::string labels_text(const std::vector<std::string>& names, const std::vector<std::string>& values,
                        std::string_view le = {}) {
  std::string out;
  const auto append = [&out](std::string_view name, std::string_view value) {
    out.append(out.empty() ? "{" : ",").append(name).append("=\"");
    append_escaped(out, value, true);
    out.push_back('"');
  };
  for (std::size_t i = 0; i < names.size(); ++i) append(names[i], values[i]);
  if (!le.empty()) append("le", le);
  if (!out.empty()) out.push_back('}');
  return out;
}

void append_sample(std::string& out, std::string_view name, std::string_view suffix, std::string_view labels,
                   double value) {
  out.append(name).append(suffix).append(labels).append(" ").append(text_of(value)).append("\n");
}

}  // namespace

const std::vector<double> latency_buckets_seconds{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
                                                  1,     2.5,    5,     10,   30,    60,   120, 300,  600};
const std::vector<double> step_buckets_seconds{1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 0.001, 0.0025, 0.005,
                                               0.01, 0.025,  0.05, 0.1,  0.25,   0.5,  1,     2.5,    10};
const std::vector<double> count_buckets{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096};

histogram::histogram(std::span<const double> bounds)
    : bounds_(bounds.begin(), bounds.end()), counts_(new std::atomic<std::uint64_t>[bounds.size() + 1]()) {
  REDLINE_ASSERT(std::is_sorted(bounds_.begin(), bounds_.end(), std::less_equal<>()), "buckets must ascend");
}

void histogram::observe(double value) {
  if (std::isnan(value)) return;
  const auto bucket = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
  counts_[static_cast<std::size_t>(bucket)].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(value, std::memory_order_relaxed);
}

std::vector<std::uint64_t> histogram::counts() const {
  std::vector<std::uint64_t> all(bounds_.size() + 1);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = counts_[i].load(std::memory_order_relaxed);
  return all;
}

metrics_registry::family& metrics_registry::family_of(std::string_view name, std::string_view help, kind what,
                                                      std::span<const double> bounds,
                                                      std::initializer_list<label> labels) {
  const std::string full = std::string(prefix).append(name);
  for (const auto& one : families_) {
    if (one->name != full) continue;
    REDLINE_ASSERT(one->what == what, "one metric name used for two kinds");
    REDLINE_ASSERT(std::equal(labels.begin(), labels.end(), one->label_names.begin(), one->label_names.end(),
                              [](const label& l, const std::string& known) { return l.first == known; }),
                   "one metric name used with two sets of label names");
    return *one;
  }
  REDLINE_ASSERT(is_metric_name(name), "a metric name has letters, digits and underscores");
  auto made = std::make_unique<family>();
  made->name = full;
  made->help = help;
  made->what = what;
  made->bounds.assign(bounds.begin(), bounds.end());
  for (const auto& [label_name, value] : labels) {
    REDLINE_ASSERT(is_metric_name(label_name) && label_name != "le", "a label name has letters and underscores");
    made->label_names.emplace_back(label_name);
  }
  families_.push_back(std::move(made));
  return *families_.back();
}

metrics_registry::series& metrics_registry::series_of(family& in, std::initializer_list<label> labels) {
  std::vector<std::string> values;
  for (const auto& one : labels) values.emplace_back(one.second);
  const auto find = [&] {
    return std::find_if(in.all.begin(), in.all.end(), [&](const auto& one) { return one->values == values; });
  };
  auto at = find();
  if (at == in.all.end() && !values.empty() && in.all.size() + 1 >= series_max_) {
    values.assign(values.size(), std::string(overflow_value));
    at = find();
  }
  if (at != in.all.end()) return **at;
  auto made = std::make_unique<series>();
  made->values = std::move(values);
  switch (in.what) {
    case kind::counter:
      made->as_counter = std::make_unique<counter>();
      break;
    case kind::gauge:
      made->as_gauge = std::make_unique<gauge>();
      break;
    case kind::histogram:
      made->as_histogram = std::make_unique<histogram>(in.bounds);
      break;
  }
  in.all.push_back(std::move(made));
  return *in.all.back();
}

counter& metrics_registry::counter_of(std::string_view name, std::string_view help,
                                      std::initializer_list<label> labels) {
  const std::lock_guard lock(mutex_);
  REDLINE_ASSERT(name.ends_with("_total"), "a counter's name ends in _total");
  return *series_of(family_of(name, help, kind::counter, {}, labels), labels).as_counter;
}

gauge& metrics_registry::gauge_of(std::string_view name, std::string_view help, std::initializer_list<label> labels) {
  const std::lock_guard lock(mutex_);
  return *series_of(family_of(name, help, kind::gauge, {}, labels), labels).as_gauge;
}

histogram& metrics_registry::histogram_of(std::string_view name, std::string_view help, std::span<const double> bounds,
                                          std::initializer_list<label> labels) {
  const std::lock_guard lock(mutex_);
  return *series_of(family_of(name, help, kind::histogram, bounds, labels), labels).as_histogram;
}

void metrics_registry::write(const family& one, std::string& out) {
  static constexpr std::string_view kinds[] = {"counter", "gauge", "histogram"};
  out.append("# HELP ").append(one.name).append(" ");
  append_escaped(out, one.help, false);
  out.append("\n# TYPE ").append(one.name).append(" ").append(kinds[static_cast<std::size_t>(one.what)]).append("\n");
  for (const auto& s : one.all) {
    const std::string labels = labels_text(one.label_names, s->values);
    if (s->as_counter) append_sample(out, one.name, "", labels, s->as_counter->value());
    if (s->as_gauge) append_sample(out, one.name, "", labels, s->as_gauge->value());
    if (!s->as_histogram) continue;
    const auto counts = s->as_histogram->counts();
    std::uint64_t below = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      below += counts[i];
      const std::string le = i < one.bounds.size() ? text_of(one.bounds[i]) : "+Inf";
      append_sample(out, one.name, "_bucket", labels_text(one.label_names, s->values, le), static_cast<double>(below));
    }
    append_sample(out, one.name, "_sum", labels, s->as_histogram->sum());
    append_sample(out, one.name, "_count", labels, static_cast<double>(below));
  }
}

std::string metrics_registry::text() const {
  const std::lock_guard lock(mutex_);
  std::string out;
  for (const auto& one : families_) write(*one, out);
  return out;
}

}  // namespace redline::actors
