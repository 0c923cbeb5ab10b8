#pragma once

#include <span>
#include <utility>
#include <vector>

namespace redline::studies {

/// 0 for no values.
[[nodiscard]] double mean(std::span<const double> values);

/// The value below which `percent` of the values lie, between two values in proportion (as numpy's default does).
/// Values that are not finite do not count; 0 when none is left. percent: 0 to 100.
[[nodiscard]] double percentile(std::vector<double> values, double percent);

/// a / b, and 0 where that is no number.
[[nodiscard]] double ratio(double a, double b);

/// Length of the union of intervals [first, second): what several recordings lasted together.
[[nodiscard]] double covered(std::vector<std::pair<double, double>> intervals);

}  // namespace redline::studies
