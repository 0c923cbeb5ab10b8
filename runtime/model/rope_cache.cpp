#include "runtime/model/rope_cache.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace redline::model {
namespace {

constexpr std::int64_t block_positions = 64;
constexpr std::size_t blocks_max = 4096;  // 262 144 positions: 128 MB at 128 rotated dimensions

/// The pair, as a fractional index, that turns `turns` times within the original context.
double pair_of(double turns, const architecture::yarn_scaling& yarn, const model_shape& c) {
  return c.rotated() * std::log(yarn.original_context / (turns * 2 * std::numbers::pi)) /
         (2 * std::log(static_cast<double>(c.rope_base)));
}

/// The factor of each pair's frequency.
double yarn_multiplier(std::uint32_t pair, const architecture::yarn_scaling& yarn, const model_shape& c) {
  const double first = pair_of(yarn.turns_kept, yarn, c), last = pair_of(yarn.turns_slowed, yarn, c);
  const double low = std::max(0.0, c.kind->yarn_whole_pairs ? std::floor(first) : first);
  const double high = std::min(c.rotated() - 1.0, c.kind->yarn_whole_pairs ? std::ceil(last) : last);
  const double slowed = std::clamp((pair - low) / std::max(0.001, high - low), 0.0, 1.0);
  return slowed / yarn.factor + (1 - slowed);
}

}  // namespace

rope_cache::rope_cache(const model_shape& config, std::span<const float> factors) : magnitude_(config.rope_magnitude) {
  for (std::uint32_t i = 0; i < config.rotated() / 2; ++i) {
    double turn = std::pow(static_cast<double>(config.rope_base), -2.0 * i / config.rotated());
    if (config.yarn) turn *= yarn_multiplier(i, *config.yarn, config);
    frequencies_.push_back(turn * config.rope_position_scale / (factors.empty() ? 1.0 : factors[i]));
  }
}

kernels::rope_angles rope_cache::at(std::int64_t position) { return find(blocks_, position, magnitude_); }

kernels::rope_angles rope_cache::turn(std::int64_t positions) {
  return find(magnitude_ == 1 ? blocks_ : turns_, positions, 1);
}

kernels::rope_angles rope_cache::find(block_map& blocks, std::int64_t position, double magnitude) const {
  const std::int64_t in_block = ((position % block_positions) + block_positions) % block_positions;
  const std::int64_t first = position - in_block;
  const std::size_t half = frequencies_.size();
  std::unique_ptr<float[]>& block = blocks[first];
  if (!block) {
    block = std::make_unique<float[]>(block_positions * 2 * half);
    for (std::int64_t p = 0; p < block_positions; ++p) {
      float* angles = block.get() + p * 2 * static_cast<std::int64_t>(half);
      for (std::size_t i = 0; i < half; ++i) {
        const double angle = static_cast<double>(first + p) * frequencies_[i];
        angles[i] = static_cast<float>(magnitude * std::cos(angle));
        angles[half + i] = static_cast<float>(magnitude * std::sin(angle));
      }
    }
  }
  return block.get() + in_block * 2 * static_cast<std::int64_t>(half);
}

void rope_cache::forget_if_large() {
  if (blocks_.size() > blocks_max) blocks_.clear();
  if (turns_.size() > blocks_max) turns_.clear();
}

}  // namespace redline::model
