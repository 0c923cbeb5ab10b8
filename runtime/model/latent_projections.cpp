#include "runtime/model/latent_projections.hpp"

#include <algorithm>

namespace redline::model {

latent_projections::latent_projections(const model_shape& config, row_products& products, std::size_t rows_max)
    : config_(config),
      shape_(*config.latent),
      products_(products),
      low_(rows_max * shape_.query_rank),
      own_(rows_max * config.heads * (shape_.plain_dim + config.rotated())),
      down_(rows_max * (shape_.rank + config.rotated())),
      values_(rows_max * config.attended_width()) {}

void latent_projections::read(const layer_weights& layer, const float* x, std::size_t rows, float* query, float* key,
                              float* value) {
  const latent_weights& w = layer.latents;
  if (shape_.query_rank == 0) {
    products_.multiply(x, rows, {{layer.query, own_.data()}, {w.down, down_.data()}});
  } else {
    products_.multiply(x, rows, {{w.query_down, low_.data()}, {w.down, down_.data()}});
    products_.for_rows(rows, [&](std::size_t row) {
      float* low = low_.data() + row * shape_.query_rank;
      products_.table().rms_norm(low, w.query_norm.data(), config_.norm_epsilon, shape_.query_rank, low);
    });
    products_.multiply(low_.data(), rows, {{layer.query, own_.data()}});
  }
  products_.for_rows(rows, [&](std::size_t row) { read_row(layer, row, query, key, value); });
  const std::size_t own = shape_.plain_dim + config_.rotated();
  multiply(w.of_query, rows,
           {.x = own_.data(),
            .x_stride = config_.heads * own,
            .x_step = own,
            .y = query + config_.rotated(),
            .y_stride = std::size_t{config_.heads} * config_.head_dim,
            .y_step = config_.head_dim});
}

/// Computes the row's key, its value, and the rotated part of its queries.
void latent_projections::read_row(const layer_weights& layer, std::size_t row, float* query, float* key, float* value) {
  const std::size_t rotated = config_.rotated(), rank = shape_.rank, plain = shape_.plain_dim;
  const float* down = down_.data() + row * (rank + rotated);
  float* to_key = key + row * config_.head_dim;
  float* to_value = value + row * config_.head_dim;
  products_.table().rms_norm(down, layer.latents.norm.data(), config_.norm_epsilon, rank, to_value);
  std::fill_n(to_value + rank, rotated, 0.0F);
  std::copy_n(down + rank, rotated, to_key);
  std::copy_n(to_value, rank, to_key + rotated);
  for (std::size_t head = row * config_.heads; head < (row + 1) * config_.heads; ++head) {
    std::copy_n(own_.data() + head * (plain + rotated) + plain, rotated, query + head * config_.head_dim);
  }
}

const float* latent_projections::write(const layer_weights& layer, const float* attended, std::size_t rows) {
  multiply(layer.latents.of_value, rows,
           {.x = attended,
            .x_stride = std::size_t{config_.heads} * config_.head_dim,
            .x_step = config_.head_dim,
            .y = values_.data(),
            .y_stride = config_.attended_width(),
            .y_step = shape_.value_dim});
  return values_.data();
}

void latent_projections::multiply(const std::vector<kernels::packed_weights>& matrices, std::size_t rows,
                                  const rows_of_heads& of) {
  inputs_.clear();
  panels_.clear();
  for (std::size_t head = 0; head < matrices.size(); ++head) {
    inputs_.push_back(
        {.x = of.x + head * of.x_step, .count = rows, .columns = matrices[head].columns(), .stride = of.x_stride});
    panels_.push_back(kernels::panels_for(matrices[head].rows()));
  }
  if (products_.takes_prepared(matrices.front())) products_.prepare(inputs_);
  products_.for_panels(panels_, [&](std::size_t head, std::size_t begin, std::size_t end, std::uint32_t) {
    products_.multiply(matrices[head], inputs_[head], begin, end, of.y + head * of.y_step, nullptr, of.y_stride);
  });
}

}  // namespace redline::model
