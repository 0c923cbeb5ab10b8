#include "runtime/model/rope_cache.hpp"

#include <cmath>

namespace redline::model {
namespace {

constexpr std::int64_t block_positions = 64;
constexpr std::size_t blocks_max = 4096;  // 262 144 positions: 128 MB at 128 rotated dimensions

}  // namespace

rope_cache::rope_cache(const model_config& config, std::span<const float> factors) {
  for (std::uint32_t i = 0; i < config.rotary_dim / 2; ++i) {
    const double turn = std::pow(static_cast<double>(config.rope_base), -2.0 * i / config.rotary_dim);
    frequencies_.push_back(turn * config.rope_position_scale / (factors.empty() ? 1.0 : factors[i]));
  }
}

kernels::rope_angles rope_cache::at(std::int64_t position) {
  const std::int64_t in_block = ((position % block_positions) + block_positions) % block_positions;
  const std::int64_t first = position - in_block;
  const std::size_t half = frequencies_.size();
  std::unique_ptr<float[]>& block = blocks_[first];
  if (!block) {
    block = std::make_unique<float[]>(block_positions * 2 * half);
    for (std::int64_t p = 0; p < block_positions; ++p) {
      float* angles = block.get() + p * 2 * static_cast<std::int64_t>(half);
      for (std::size_t i = 0; i < half; ++i) {
        const double angle = static_cast<double>(first + p) * frequencies_[i];
        angles[i] = static_cast<float>(std::cos(angle));
        angles[half + i] = static_cast<float>(std::sin(angle));
      }
    }
  }
  return block.get() + in_block * 2 * static_cast<std::int64_t>(half);
}

void rope_cache::forget_if_large() {
  if (blocks_.size() > blocks_max) blocks_.clear();
}

}  // namespace redline::model
