#pragma once

// What is assumed of passes by all that learns from them.

namespace redline::cost {

/// What is measured of a pass is off by about this much of itself from one time to the next.
inline constexpr double noise_ratio = 0.05;
/// Every parameter may drift by this much of itself from one pass to the next.
inline constexpr double drift_ratio = 0.01;

}  // namespace redline::cost
