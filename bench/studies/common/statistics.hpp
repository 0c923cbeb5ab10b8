#pragma once

#include <span>
#include <utility>
#include <vector>

namespace redline::studies {

/// Returns 0 if there are no values.
[[nodiscard]] double mean(std::span<const double> values);

/// The value below which `percent` of the values lie, interpolated between two values as numpy's default does. Values
/// that are not finite do not count; the result is 0 if none is left. percent: 0 to 100.
[[nodiscard]] double percentile(std::vector<double> values, double percent);

/// a / b, or 0 if that is not a number.
[[nodiscard]] double ratio(double a, double b);

/// The length of the union of intervals [first, second), which is how long several recordings lasted together.
[[nodiscard]] double covered(std::vector<std::pair<double, double>> intervals);

}  // namespace redline::studies
