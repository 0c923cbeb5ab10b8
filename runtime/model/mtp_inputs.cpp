#include "runtime/model/mtp_inputs.hpp"

#include <algorithm>

namespace redline::model {

mtp_inputs::mtp_inputs(const model_shape& config, row_products& products, std::size_t rows_max, std::uint32_t slots,
                       std::uint32_t copies, std::uint32_t records_max)
    : width_(config.width),
      epsilon_(config.norm_epsilon),
      products_(products),
      slots_(slots),
      records_max_(records_max),
      memory_(slots * slot_bytes(config, records_max) + copies * slot_bytes(config, 0)),
      outputs_(rows_max * width_),
      pairs_(rows_max * 2 * width_) {}

std::uint64_t mtp_inputs::slot_bytes(const model_shape& config, std::uint32_t records_max) {
  return kernels::round_up((std::uint64_t{1} + records_max) * config.width * sizeof(float), 64);
}
std::uint64_t mtp_inputs::row_bytes(const model_shape& config) { return 3ULL * config.width * sizeof(float); }

row_history mtp_inputs::history_of(std::uint32_t slot) const {
  const auto bytes = [this](std::size_t rows) { return kernels::round_up(rows * width_ * sizeof(float), 64); };
  const std::uint64_t whole = bytes(std::size_t{1} + records_max_), copied = bytes(1);
  const std::uint64_t at = std::min(slot, slots_) * whole + (slot - std::min(slot, slots_)) * copied;
  REDLINE_ASSERT(at + copied <= memory_.size(), "the slot is within the storage");
  auto* const last = reinterpret_cast<float*>(memory_.data() + at);
  return {last, last + width_, 1, width_};
}

void mtp_inputs::copy(std::span<const kv::state_copy> copies) {
  for (const kv::state_copy& c : copies) {
    if (c.from != c.to) std::copy_n(history_of(c.from).last, width_, history_of(c.to).last);
  }
}

void mtp_inputs::begin(std::span<const run> batch) {
  parts_.clear();
  std::size_t rows = 0;
  for (const run& r : batch) {
    if (r.tokens.empty()) continue;
    parts_.push_back({rows, r.tokens.size(), r.state});
    rows += r.tokens.size();
    // The first token of a sequence has no row before it, and no draft reads what is made of it.
    if (r.state.begins) std::fill_n(history_of(r.state.slot).last, width_, 0.0F);
  }
}

/// Writes [norm(embedding of the token), norm(previous)].
void mtp_inputs::write_pair(const weights& w, token t, const float* previous, std::size_t row) {
  float* const pair = pairs_.data() + row * 2 * width_;
  const auto& table = products_.table();
  table.unpack_row(w.embedding.view(), static_cast<std::size_t>(t), pair);
  table.rms_norm(pair, w.mtp.embedding_norm.data(), epsilon_, width_, pair);
  table.rms_norm(previous, w.mtp.state_norm.data(), epsilon_, width_, pair + width_);
}

void mtp_inputs::read(const weights& w, std::span<const token> tokens, const float* normed, float* x) {
  std::copy_n(normed, tokens.size() * width_, outputs_.data());
  products_.team().parallel_for(parts_.size(), [&](std::size_t item, std::uint32_t) {
    const part& p = parts_[item];
    const row_history outputs = history_of(p.state.slot);
    const float* const of_run = outputs_.data() + p.first_row * width_;
    for (std::size_t i = 0; i < p.row_count; ++i)
      write_pair(w, tokens[p.first_row + i], outputs.row_before(p.state, of_run, i, 1), p.first_row + i);
    for (const auto& copy : p.state.snapshots)
      outputs.write_last(p.state, of_run, copy.rows, history_of(copy.slot).last);
    outputs.remember(p.state, of_run, p.row_count);
  });
  products_.multiply(pairs_.data(), tokens.size(), {{w.mtp.input, x}});
}

void mtp_inputs::combine(const weights& w, std::span<const token> tokens, const float* previous, float* x) {
  for (std::size_t i = 0; i < tokens.size(); ++i) write_pair(w, tokens[i], previous + i * width_, i);
  products_.multiply(pairs_.data(), tokens.size(), {{w.mtp.input, x}});
}

}  // namespace redline::model
