#include "runtime/model/recurrent_layers.hpp"

#include <algorithm>
#include <cmath>

#include "runtime/base/assert.hpp"
#include "runtime/base/portable_math.hpp"

namespace redline::model {
namespace {

constexpr float length_epsilon = 1e-6F;  // added to the sum of squares of a query or key

float sigmoid(float x) { return static_cast<float>(1 / (1 + portable_exp(-double{x}))); }
/// log(1 + e^x)
double softplus(double x) { return std::max(x, 0.0) + portable_log(1 + portable_exp(-std::abs(x))); }

}  // namespace

recurrent_layers::sizes::sizes(const model_shape& config) {
  if (!config.delta) {
    taps = config.convolution_taps;
    channels = outputs = config.width;
    return;
  }
  const auto& s = *config.delta;
  taps = s.taps;
  channels = s.channels();
  outputs = values = s.values();
  keys = s.keys();
  value_heads = s.value_heads;
  matrices = values * s.head_dim;
}

recurrent_layers::recurrent_layers(const model_shape& config, row_products& products, std::size_t rows_max,
                                   std::uint32_t slots, std::uint32_t copies, std::uint32_t records_max)
    : config_(config),
      sizes_(config),
      shape_(config.delta.value_or(architecture::delta_shape())),
      products_(products),
      slots_(slots),
      records_max_(records_max),
      layers_(config.layers - config.attention_layers()),
      memory_(slots * slot_bytes(config, records_max) + copies * slot_bytes(config, 0)),
      inputs_(rows_max * sizes_.channels),
      mixed_(rows_max * sizes_.channels),
      projected_(config.delta ? 0 : rows_max * 3 * config.width),
      gates_(rows_max * sizes_.values),
      decays_(rows_max * sizes_.value_heads),
      strengths_(rows_max * sizes_.value_heads),
      changes_(rows_max * sizes_.values),
      outputs_(rows_max * sizes_.values),
      // rms_norm divides by the root of the mean of squares; a query is also divided by the root of head_dim.
      query_scale_(shape_.head_dim, 1 / static_cast<float>(shape_.head_dim)),
      key_scale_(shape_.head_dim, 1 / std::sqrt(static_cast<float>(shape_.head_dim))),
      scratch_(products.team().size()) {
  REDLINE_ASSERT(
      sizes_.taps >= 1 && sizes_.taps <= architecture::taps_max && shape_.head_dim % kernels::delta_columns == 0,
      "the shape was checked when it was read");
}

std::size_t recurrent_layers::layer_floats(const sizes& s, std::uint32_t records_max) {
  const std::size_t record = s.channels + s.keys + s.values + s.value_heads;
  // Whole cache lines.
  return kernels::round_up(s.matrices + (s.taps - 1) * s.channels + records_max * record, 16);
}
std::uint64_t recurrent_layers::slot_bytes(const model_shape& config, std::uint32_t records_max) {
  return (config.layers - config.attention_layers()) * layer_floats(sizes(config), records_max) * sizeof(float);
}
std::uint64_t recurrent_layers::row_bytes(const model_shape& config) {
  const sizes s(config);
  const std::size_t projected = config.delta ? 0 : 3 * std::size_t{config.width};
  return (2 * s.channels + 3 * s.values + 2 * s.value_heads + projected) * sizeof(float);
}

recurrent_layers::view recurrent_layers::view_of(std::uint32_t slot, std::size_t place) const {
  const std::uint64_t whole = layer_floats(sizes_, records_max_), copied = layer_floats(sizes_, 0);
  const std::size_t floats = slot < slots_ ? whole : copied;
  const std::uint64_t before = std::min(slot, slots_) * whole + (slot - std::min(slot, slots_)) * copied;
  const std::uint64_t at = (before * layers_ + place * floats) * sizeof(float);
  REDLINE_ASSERT(at + floats * sizeof(float) <= memory_.size(), "the slot is within the storage");
  view v{};
  v.matrices = reinterpret_cast<float*>(memory_.data() + at);
  v.history = v.matrices + sizes_.matrices;
  v.inputs = v.history + (sizes_.taps - 1) * sizes_.channels;
  v.keys = v.inputs + records_max_ * sizes_.channels;
  v.changes = v.keys + records_max_ * sizes_.keys;
  v.decays = v.changes + records_max_ * sizes_.values;
  return v;
}

void recurrent_layers::copy(std::span<const kv::state_copy> copies) {
  products_.team().parallel_for(copies.empty() ? 0 : layers_, [&](std::size_t place, std::uint32_t) {
    for (const kv::state_copy& c : copies) {
      const view from = view_of(c.from, place), to = view_of(c.to, place);
      if (c.from != c.to) std::copy(from.matrices, from.inputs, to.matrices);
    }
  });
}

void recurrent_layers::begin(std::span<const run> batch) {
  parts_.clear();
  part_of_row_.clear();
  for (const run& r : batch) {
    if (r.tokens.empty()) continue;
    const part p{part_of_row_.size(), static_cast<std::uint32_t>(r.tokens.size()), r.state};
    REDLINE_ASSERT(
        p.state.records <= records_max_ && p.state.kept <= p.row_count && p.row_count - p.state.kept <= records_max_,
        "a slot has room for the records of a run");
    for (const auto& copy : p.state.snapshots)
      REDLINE_ASSERT(copy.rows > 0 && copy.rows <= p.state.records + p.state.kept && copy.slot != p.state.slot,
                     "a state is copied after a kept row");
    for (std::size_t place = 0; p.state.begins && place < layers_; ++place) {
      const view v = view_of(p.state.slot, place);
      std::fill(v.matrices, v.inputs, 0.0F);
    }
    part_of_row_.insert(part_of_row_.end(), p.row_count, static_cast<std::uint32_t>(parts_.size()));
    parts_.push_back(p);
  }
}

float* recurrent_layers::compute(std::size_t place, const layer_weights& layer, const float* x, std::size_t rows) {
  float* const out = config_.delta ? compute_delta(place, layer, x, rows) : compute_convolution(place, layer, x, rows);
  products_.team().parallel_for(parts_.size(), [&](std::size_t item, std::uint32_t) { remember(parts_[item], place); });
  return out;
}

float* recurrent_layers::compute_delta(std::size_t place, const layer_weights& layer, const float* x,
                                       std::size_t rows) {
  const delta_weights& w = layer.delta;
  products_.multiply(x, rows,
                     {{w.input, inputs_.data()},
                      {w.gate, gates_.data()},
                      {w.decay_input, decays_.data()},
                      {w.strength, strengths_.data()}});
  products_.for_rows(rows, [&](std::size_t row) {
    convolve(layer.short_convolution, parts_[part_of_row_[row]], place, row, true);
    finish_row(layer, row);
  });
  const std::size_t heads = shape_.value_heads;
  products_.team().parallel_for(parts_.size() * heads, [&](std::size_t item, std::uint32_t worker) {
    scan(parts_[item / heads], place, item % heads, worker);
  });
  products_.for_rows(rows, [&](std::size_t row) {
    float* const out = outputs_.data() + row * sizes_.values;
    float* const gate = gates_.data() + row * sizes_.values;
    const auto& table = products_.table();
    for (std::size_t at = 0; at < sizes_.values; at += shape_.head_dim)
      table.rms_norm(out + at, w.norm.data(), config_.norm_epsilon, shape_.head_dim, out + at);
    table.silu_multiply(gate, out, sizes_.values);
  });
  return gates_.data();
}

/// Source: Liquid AI, "LFM2 Technical Report" (2025), section 2: gated short convolutions.
float* recurrent_layers::compute_convolution(std::size_t place, const layer_weights& layer, const float* x,
                                             std::size_t rows) {
  const std::size_t width = config_.width;
  products_.multiply(x, rows, {{layer.convolution_input, projected_.data()}});
  const auto multiply = [width](const float* a, const float* b, float* out) {
    for (std::size_t i = 0; i < width; ++i) out[i] = a[i] * b[i];
  };
  products_.for_rows(rows, [&](std::size_t row) {
    const float* const first = projected_.data() + row * 3 * width;
    multiply(first, first + 2 * width, inputs_.data() + row * width);
  });
  products_.for_rows(rows, [&](std::size_t row) {
    convolve(layer.short_convolution, parts_[part_of_row_[row]], place, row, false);
    float* const mixed = mixed_.data() + row * width;
    multiply(projected_.data() + (row * 3 + 1) * width, mixed, mixed);
  });
  return mixed_.data();
}

void recurrent_layers::convolve(const std::vector<float>& weights, const part& p, std::size_t place, std::size_t row,
                                bool has_silu) {
  const std::size_t channels = sizes_.channels;
  const row_history inputs = history_of(view_of(p.state.slot, place));
  const float* taps[architecture::taps_max];
  for (std::size_t tap = 0; tap < sizes_.taps; ++tap) {
    taps[tap] =
        inputs.row_before(p.state, inputs_.data() + p.first_row * channels, row - p.first_row, sizes_.taps - 1 - tap);
  }
  products_.table().convolve(taps, weights.data(), sizes_.taps, channels, has_silu, mixed_.data() + row * channels);
}

/// Makes a row's queries and keys, and the numbers by which it changes the state.
void recurrent_layers::finish_row(const layer_weights& layer, std::size_t row) {
  float* const mixed = mixed_.data() + row * sizes_.channels;
  const float epsilon = length_epsilon / static_cast<float>(shape_.head_dim);
  for (std::size_t at = 0; at < 2 * sizes_.keys; at += shape_.head_dim) {
    const auto& scale = at < sizes_.keys ? query_scale_ : key_scale_;
    products_.table().rms_norm(mixed + at, scale.data(), epsilon, shape_.head_dim, mixed + at);
  }
  for (std::size_t head = 0; head < sizes_.value_heads; ++head) {
    float& decay = decays_.data()[row * sizes_.value_heads + head];
    float& strength = strengths_.data()[row * sizes_.value_heads + head];
    const double rate = double{layer.delta.decay[head]} * softplus(double{decay} + layer.delta.decay_bias[head]);
    decay = static_cast<float>(portable_exp(rate));
    strength = sigmoid(strength);
  }
}

/// Runs one head of a run through its state.
void recurrent_layers::scan(const part& p, std::size_t place, std::size_t head, std::uint32_t worker) {
  const view v = view_of(p.state.slot, place);
  const std::size_t d = shape_.head_dim, key_at = shape_.key_head_of(static_cast<std::uint32_t>(head)) * d,
                    value_at = head * d;
  scratch& s = scratch_[worker];
  s.updates.clear();
  s.rows.clear();
  s.columns.resize(d * kernels::delta_columns);
  for (std::size_t i = 0; i < p.state.records; ++i) {
    s.updates.push_back({v.keys + i * sizes_.keys + key_at, v.changes + i * sizes_.values + value_at,
                         v.decays[i * sizes_.value_heads + head]});
  }
  for (std::size_t row = p.first_row; row < p.first_row + p.row_count; ++row) {
    const float* const mixed = mixed_.data() + row * sizes_.channels;
    s.rows.push_back({.query = mixed + key_at,
                      .key = mixed + sizes_.keys + key_at,
                      .value = mixed + 2 * sizes_.keys + value_at,
                      .decay = decays_.data()[row * sizes_.value_heads + head],
                      .strength = strengths_.data()[row * sizes_.value_heads + head],
                      .change = changes_.data() + row * sizes_.values + value_at,
                      .out = outputs_.data() + row * sizes_.values + value_at});
  }
  // The records and rows up to each copy of the state are a call of their own.
  std::size_t updates = 0, rows = 0;
  const auto run_to = [&](std::size_t updates_end, std::size_t rows_end) {
    const std::size_t kept_end = std::min<std::size_t>(rows_end, p.state.kept);
    products_.table().delta_rule({.state = v.matrices + value_at * d,
                                  .head_dim = d,
                                  .updates = s.updates.data() + updates,
                                  .update_count = updates_end - updates,
                                  .rows = s.rows.data() + rows,
                                  .row_count = rows_end - rows,
                                  .kept_count = kept_end - std::min(rows, kept_end),
                                  .group_begin = 0,
                                  .group_end = d / kernels::delta_columns,
                                  .scratch = s.columns.data()});
    updates = updates_end;
    rows = rows_end;
  };
  for (const auto& copy : p.state.snapshots) {
    const std::size_t applied = std::min<std::size_t>(copy.rows, p.state.records);
    run_to(applied, copy.rows - applied);
    std::copy_n(v.matrices + value_at * d, d * d, view_of(copy.slot, place).matrices + value_at * d);
  }
  run_to(p.state.records, p.row_count);
}

/// Leaves the convolution's last rows, and records of the rows that were not kept.
void recurrent_layers::remember(const part& p, std::size_t place) {
  const view v = view_of(p.state.slot, place);
  const row_history inputs = history_of(v);
  const float* const of_run = inputs_.data() + p.first_row * sizes_.channels;
  for (const auto& copy : p.state.snapshots)
    inputs.write_last(p.state, of_run, copy.rows, view_of(copy.slot, place).history);
  inputs.remember(p.state, of_run, p.row_count);
  for (std::size_t i = p.state.kept; i < p.row_count; ++i) {
    const std::size_t row = p.first_row + i, to = i - p.state.kept;
    std::copy_n(mixed_.data() + row * sizes_.channels + sizes_.keys, sizes_.keys, v.keys + to * sizes_.keys);
    std::copy_n(changes_.data() + row * sizes_.values, sizes_.values, v.changes + to * sizes_.values);
    std::copy_n(decays_.data() + row * shape_.value_heads, shape_.value_heads, v.decays + to * shape_.value_heads);
  }
}

}  // namespace redline::model
