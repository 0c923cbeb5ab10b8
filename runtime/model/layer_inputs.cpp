#include "runtime/model/layer_inputs.hpp"

#include <cmath>
#include <numbers>

namespace redline::model {
namespace {

std::size_t all_inputs(const model_shape& c) { return std::size_t{c.varied->layer_input} * c.layers; }

}  // namespace

layer_inputs::layer_inputs(const model_shape& config, row_products& products, std::size_t rows_max)
    : config_(config),
      products_(products),
      size_(config.varied->layer_input),
      embeddings_(rows_max * all_inputs(config)),
      inputs_(rows_max * all_inputs(config)),
      gate_(rows_max * size_),
      added_(rows_max * config.width) {}

std::uint64_t layer_inputs::row_bytes(const model_shape& config) {
  return (2 * all_inputs(config) + config.varied->layer_input + config.width) * sizeof(float);
}

void layer_inputs::begin(const weights& w, std::span<const token> tokens, const float* x) {
  const kernels::kernel_table& table = products_.table();
  const std::size_t all = all_inputs(config_);
  products_.multiply(x, tokens.size(), {{w.layer_projection, inputs_.data()}});
  const float of_projection = 1 / std::sqrt(static_cast<float>(config_.width));
  const float of_embedding = std::sqrt(static_cast<float>(size_)), of_sum = 1 / std::numbers::sqrt2_v<float>;
  products_.for_rows(tokens.size(), [&](std::size_t row) {
    float* const embedding = embeddings_.data() + row * all;
    table.unpack_row(w.layer_embedding.view(), static_cast<std::size_t>(tokens[row]), embedding);
    float* const to = inputs_.data() + row * all;
    for (std::size_t i = 0; i < all; ++i) to[i] *= of_projection;
    for (std::size_t at = 0; at < all; at += size_)
      table.rms_norm(to + at, w.layer_projection_norm.data(), config_.norm_epsilon, size_, to + at);
    for (std::size_t i = 0; i < all; ++i) to[i] = (to[i] + embedding[i] * of_embedding) * of_sum;
  });
}

void layer_inputs::add(std::size_t layer, const layer_weights& l, std::span<const std::uint32_t> wanted,
                       std::size_t rows, float* x) {
  const kernels::kernel_table& table = products_.table();
  products_.multiply(x, rows, {{l.input.gate, gate_.data()}});
  products_.for_rows(rows, [&](std::size_t row) {
    const std::size_t of_pass = wanted.empty() ? row : wanted[row];
    table.gelu_multiply(gate_.data() + row * size_, inputs_.data() + of_pass * all_inputs(config_) + layer * size_,
                        size_);
  });
  products_.multiply(gate_.data(), rows, {{l.input.projection, added_.data()}});
  products_.for_rows(rows, [&](std::size_t row) {
    float* const more = added_.data() + row * config_.width;
    table.rms_norm(more, l.input.post_norm.scale.data(), config_.norm_epsilon, config_.width, more);
    table.add_scaled(x + row * config_.width, 1, more, config_.width);
  });
}

}  // namespace redline::model
