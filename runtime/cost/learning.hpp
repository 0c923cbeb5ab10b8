#pragma once

// Assumptions about passes shared by all code that learns from them.

namespace redline::cost {

/// Measurements of a pass vary by about this fraction from one time to the next.
inline constexpr double noise_ratio = 0.05;
/// Every parameter may drift by this fraction from one pass to the next.
inline constexpr double drift_ratio = 0.01;

}  // namespace redline::cost
