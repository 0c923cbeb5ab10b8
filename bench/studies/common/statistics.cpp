#include "bench/studies/common/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace redline::studies {

double mean(std::span<const double> values) {
  return ratio(std::accumulate(values.begin(), values.end(), 0.0), static_cast<double>(values.size()));
}

double percentile(std::vector<double> values, double percent) {
  std::erase_if(values, [](double v) { return !std::isfinite(v); });
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double at = std::clamp(percent, 0.0, 100.0) / 100 * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return std::lerp(values[below], values[above], at - static_cast<double>(below));
}

double ratio(double a, double b) {
  const double r = a / b;
  return std::isfinite(r) ? r : 0;
}

double covered(std::vector<std::pair<double, double>> intervals) {
  std::sort(intervals.begin(), intervals.end());
  double length = 0;
  double end = -INFINITY;
  for (const auto& [from, to] : intervals) {
    length += std::max(0.0, to - std::max(from, end));
    end = std::max(end, to);
  }
  return length;
}

}  // namespace redline::studies
