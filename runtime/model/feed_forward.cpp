#include "runtime/model/feed_forward.hpp"

#include <algorithm>

namespace redline::model {
namespace {

std::size_t hidden_per_row(const model_shape& c) {
  const std::size_t of_experts = std::size_t{c.experts_used} * c.expert_feed_forward + c.shared_feed_forward;
  const std::size_t dense = std::max(c.feed_forward, c.varied ? c.varied->sharing_feed_forward : 0);
  const bool has_dense = !c.is_mixture(0) || (c.kind != nullptr && c.kind->adds_mixture());
  return has_dense ? std::max(dense, of_experts) : of_experts;
}

}  // namespace

std::uint64_t feed_forward::row_bytes(const model_shape& c) {
  const std::uint64_t of_shared = c.shared_feed_forward == 0 ? 0 : 1 + c.width;
  return (2 * hidden_per_row(c) + 2ULL * c.experts_used * c.width + c.experts + of_shared) * sizeof(float) +
         c.experts_used * (sizeof(expert_share) + sizeof(std::uint32_t));
}

feed_forward::feed_forward(const model_shape& config, row_products& products, std::size_t rows_max)
    : config_(config),
      products_(products),
      gate_(rows_max * hidden_per_row(config)),
      up_(rows_max * hidden_per_row(config)),
      router_logits_(rows_max * config.experts),
      shared_logits_(config.shared_feed_forward == 0 ? 0 : rows_max),
      gathered_(rows_max * config.experts_used * config.width),
      of_experts_(rows_max * config.experts_used * config.width),
      of_shared_(config.shared_feed_forward == 0 ? 0 : rows_max * config.width),
      shares_(rows_max * config.experts_used),
      pairs_(rows_max * config.experts_used) {}

void feed_forward::begin() {
  groups_.clear();
  inputs_.clear();
  hidden_used_ = 0;
}

void feed_forward::compute_dense(const layer_weights& layer, const float* x, std::size_t rows, float* out) {
  begin();
  add_group(layer.feed_forward, x, rows, out);
  compute_groups();
}

void feed_forward::compute(const layer_weights& layer, const float* x, std::size_t rows, float* out,
                           const float* to_router) {
  if (layer.mixture.experts.empty()) return compute_dense(layer, x, rows, out);
  begin();
  choose(layer.mixture, to_router == nullptr ? x : to_router, rows);
  gather(layer.mixture, x, rows);
  use_.layers += 1;
  use_.rows += rows;
  use_.experts += groups_.size();
  if (config_.shared_feed_forward != 0) add_group(layer.mixture.shared, x, rows, of_shared_.data());
  compute_groups();
  sum(layer.mixture, rows, out);
}

/// Chooses the experts of every row.
void feed_forward::choose(const mixture_weights& mixture, const float* x, std::size_t rows) {
  if (mixture.shared_router.rows() != 0) {
    products_.multiply(x, rows,
                       {{mixture.router, router_logits_.data()}, {mixture.shared_router, shared_logits_.data()}});
  } else {
    products_.multiply(x, rows, {{mixture.router, router_logits_.data(), or_null(mixture.router_bias)}});
  }
  const std::size_t used = config_.experts_used;
  products_.for_rows(rows, [&](std::size_t row) {
    choose_experts(products_.table(), {router_logits_.data() + row * config_.experts, config_.experts},
                   {.gates = config_.gates,
                    .normalises = config_.normalises_experts,
                    .scale = config_.expert_scale,
                    .selection_bias = mixture.selection_bias,
                    .groups = config_.expert_groups,
                    .groups_used = config_.expert_groups_used},
                   {shares_.data() + row * used, used});
    if (mixture.expert_scales.empty()) return;
    for (std::size_t i = row * used; i < (row + 1) * used; ++i)
      shares_[i].weight *= mixture.expert_scales[shares_[i].expert];
  });
}

/// Gathers rows by expert, in their order, as one group for each expert that has rows.
void feed_forward::gather(const mixture_weights& mixture, const float* x, std::size_t rows) {
  const std::size_t used = config_.experts_used;
  const std::span<const expert_share> shares(shares_.data(), rows * used);
  pairs_begin_.assign(config_.experts + 1, 0);
  for (const expert_share& share : shares) ++pairs_begin_[share.expert + 1];
  for (std::size_t e = 0; e < config_.experts; ++e) {
    const std::size_t begin = pairs_begin_[e], count = pairs_begin_[e + 1];
    pairs_begin_[e + 1] += pairs_begin_[e];
    if (count == 0) continue;
    add_group(mixture.experts[e], gathered_.data() + begin * config_.width, count,
              of_experts_.data() + begin * config_.width);
  }
  for (std::size_t i = 0; i < shares.size(); ++i) pairs_[i] = pairs_begin_[shares[i].expert]++;
  products_.for_rows(rows, [&](std::size_t row) {
    for (std::size_t i = row * used; i < (row + 1) * used; ++i) {
      std::copy_n(x + row * config_.width, config_.width, gathered_.data() + pairs_[i] * std::size_t{config_.width});
    }
  });
}

void feed_forward::add_group(const feed_forward_weights& w, const float* x, std::size_t rows, float* out) {
  groups_.push_back({.w = &w, .gate = gate_.data() + hidden_used_, .up = up_.data() + hidden_used_, .out = out});
  inputs_.push_back({.x = x, .count = rows, .columns = config_.width});
  hidden_used_ += rows * w.up.rows();
}

/// Computes spans of hidden outputs that stay in the cache between the steps, then the product back to the width.
void feed_forward::compute_groups() {
  const bool gated = config_.kind->activation != architecture::feed_forward_kind::gelu;
  const auto prepare_if = [&](auto takes) {
    if (std::ranges::any_of(groups_, takes)) products_.prepare(inputs_);
  };
  prepare_if([&](const group& g) {
    return products_.takes_prepared(g.w->up) || (gated && products_.takes_prepared(g.w->gate));
  });
  panels_.clear();
  for (const group& g : groups_) panels_.push_back(kernels::panels_for(g.w->up.rows()));
  const std::size_t step = products_.table().panels_together;
  const auto multiply = [&](std::size_t which, std::size_t begin, std::size_t end) {
    const group& g = groups_[which];
    const input_rows& rows = inputs_[which];
    const std::size_t hidden = g.w->up.rows();
    if (gated) products_.multiply(g.w->gate, rows, begin, end, g.gate, or_null(g.w->gate_bias));
    products_.multiply(g.w->up, rows, begin, end, gated ? g.up : g.gate, or_null(g.w->up_bias));
    const std::size_t from = begin * kernels::panel_rows;
    const std::size_t count = std::min(hidden, end * kernels::panel_rows) - from;
    for (std::size_t row = 0; row < rows.count; ++row) {
      const std::size_t at = row * hidden + from;
      activate(g.gate + at, gated ? g.up + at : nullptr, count);
    }
  };
  // Alternates between a few panels of both matrices: their output stays in the first-level cache, and each prefetches
  // its own next panels.
  products_.for_panels(panels_, [&](std::size_t which, std::size_t begin, std::size_t end, std::uint32_t) {
    for (; begin < end; begin += step) multiply(which, begin, std::min(end, begin + step));
  });

  panels_.clear();
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    inputs_[i] = {.x = groups_[i].gate, .count = inputs_[i].count, .columns = groups_[i].w->down.columns()};
    panels_.push_back(kernels::panels_for(groups_[i].w->down.rows()));
  }
  prepare_if([&](const group& g) { return products_.takes_prepared(g.w->down); });
  products_.for_panels(panels_, [&](std::size_t which, std::size_t begin, std::size_t end, std::uint32_t) {
    const group& g = groups_[which];
    products_.multiply(g.w->down, inputs_[which], begin, end, g.out, or_null(g.w->down_bias));
  });
}

void feed_forward::activate(float* gate, const float* up, std::size_t count) const {
  const kernels::kernel_table& table = products_.table();
  switch (config_.kind->activation) {
    case architecture::feed_forward_kind::gated_silu:
      return table.silu_multiply(gate, up, count);
    case architecture::feed_forward_kind::clamped_swiglu:
      return table.clamped_swiglu(gate, up, count);
    case architecture::feed_forward_kind::gated_gelu:
    case architecture::feed_forward_kind::gelu:
      return table.gelu_multiply(gate, up, count);
  }
}

void feed_forward::sum(const mixture_weights& mixture, std::size_t rows, float* out) {
  const std::size_t used = config_.experts_used, width = config_.width;
  const kernels::kernel_table& table = products_.table();
  products_.for_rows(rows, [&](std::size_t row) {
    float* to = out + row * width;
    std::fill_n(to, width, 0.0F);
    for (std::size_t i = row * used; i < (row + 1) * used; ++i) {
      table.add_scaled(to, shares_[i].weight, of_experts_.data() + pairs_[i] * width, width);
    }
    if (mixture.shared.up.rows() == 0) return;
    if (mixture.shared_router.rows() == 0) {
      return table.add_scaled(to, 1, of_shared_.data() + row * width, width);
    }
    float sigmoid[] = {shared_logits_.data()[row], 0};  // the softmax of two logits is the sigmoid of their difference
    table.softmax(sigmoid, 2);
    table.add_scaled(to, sigmoid[0], of_shared_.data() + row * width, width);
  });
}

}  // namespace redline::model
