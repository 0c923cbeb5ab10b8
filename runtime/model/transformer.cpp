#include "runtime/model/transformer.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/model/attention_layers.hpp"
#include "runtime/model/feed_forward.hpp"
#include "runtime/model/latent_projections.hpp"
#include "runtime/model/layer_inputs.hpp"
#include "runtime/model/mtp_inputs.hpp"
#include "runtime/model/recurrent_layers.hpp"
#include "runtime/model/row_products.hpp"
#include "runtime/model/weights.hpp"

namespace redline::model {

struct transformer::state {
  state(std::shared_ptr<const weights> the_weights, const kernels::kernel_table& the_table,
        kernels::worker_team& the_team, const options& how);

  // Preparation before the layers.
  void prepare(std::span<const run> batch);
  void embed();

  // The two halves of a layer.
  void remember_and_attend(std::size_t layer);
  void follow_state(std::size_t layer);
  void add_feed_forward(std::size_t layer);

  // The MTP layer.
  void follow_mtp();

  // The steps inside a layer.
  void multiply(const float* rows_of_x, std::initializer_list<row_products::product> those);
  void make_queries_keys_values(std::size_t layer);
  void normalise_row(const norm_weights& norm, const float* from, float* to);
  void normalise(const norm_weights& norm);
  void add_row(std::size_t row, const norm_weights& post_norm);
  void add(const norm_weights& post_norm);
  void add_and_normalise(const norm_weights& post_norm, const norm_weights& next);
  void normalise_parts(std::size_t layer, float* heads, std::size_t width, const std::vector<float>& weight);
  void normalise_queries(std::size_t layer);
  void normalise_keys(std::size_t layer);
  void add_mixture(const layer_weights& l);
  void keep_wanted_rows(float* read, std::size_t read_width);
  const float* picked_rows(std::span<const std::uint32_t> which);
  void make_logits(const kernels::packed_weights& head, const float* from, std::size_t count);

  template<class Body>
  void for_rows(Body body);
  template<class Body>
  void timed(double& seconds, Body body);
  /// Whether rows that want no logits are dropped in the layer, because no later one needs them.
  [[nodiscard]] bool drops_rows(std::size_t layer) const { return layer + 1 == config.layers && !mtp; }
  [[nodiscard]] const norm_weights& norm_after(std::size_t layer) const {
    if (layer + 1 < config.layers) return w->layers[layer + 1].attention_norm;
    return layer + 1 == config.layers ? w->output_norm : w->mtp.output_norm;
  }

  std::shared_ptr<const weights> w;
  const model_shape& config;
  const kernels::kernel_table& table;
  kernels::worker_team& team;
  options how;
  row_products products;
  attention_layers attention;
  feed_forward hidden;
  std::optional<latent_projections> latents;
  std::optional<recurrent_layers> recurrent;
  std::optional<layer_inputs> inputs;
  std::optional<mtp_inputs> mtp;
  times spent;

  // Activations of the current rows, each as wide as its layer has it.
  float_buffer x, normed, query, key, value, attended, delta;
  float_buffer query_gate;         // [rows, query_width], if the family gates attention
  float_buffer beside, to_router;  // [rows, width], if mixtures stand beside dense parts
  std::vector<float> ones;         // weights of a norm without weights, if the family normalizes values
  float_buffer logits;
  float_buffer picked;                  // rows of one step of the output head
  std::vector<kernels::row_best> best;  // for these rows
  std::size_t rows = 0;                 // rows in the activations: all, then only those that want logits

  // The current batch, as set by `prepare`.
  std::vector<token> tokens;  // by row
  std::vector<std::uint32_t> wanted_rows;

  /// A draft of the MTP layer.
  struct drafting {
    std::vector<kv::piece> table;  // what its rows see, with a last piece for themselves
    position next_position = 0;
  };
  std::vector<drafting> drafts;
  float_buffer draft_outputs;     // [drafts, width]: of each one's last row
  float_buffer previous_outputs;  // [rows, width]: those of the drafts that go on
};

transformer::state::state(std::shared_ptr<const weights> the_weights, const kernels::kernel_table& the_table,
                          kernels::worker_team& the_team, const options& how_to)
    : w(std::move(the_weights)),
      config(w->config),
      table(the_table),
      team(the_team),
      how(how_to),
      products(table, team),
      attention(*w, products, how.kv, how.pages_count, how.window_pages_count),
      hidden(config, products, how.rows_max),
      x(std::size_t{how.rows_max} * config.width),
      normed(std::size_t{how.rows_max} * config.width),
      query(how.rows_max * widest_of(config).queries),
      key(how.rows_max * widest_of(config).keys),
      value(how.rows_max * widest_of(config).keys),
      attended(how.rows_max * widest_of(config).queries),
      delta(std::size_t{how.rows_max} * config.width),
      logits(std::size_t{how.logits_rows_max} * config.vocabulary) {
  if (config.latent) latents.emplace(config, products, how.rows_max);
  if (config.has_states())
    recurrent.emplace(config, products, how.rows_max, how.state_slots, how.state_copies, how.records_max);
  if (config.varied && config.varied->layer_input != 0) inputs.emplace(config, products, how.rows_max);
  if (config.has_mtp()) {
    mtp.emplace(config, products, how.rows_max, how.state_slots, how.state_copies, how.records_max);
    draft_outputs = float_buffer(std::size_t{mtp_drafts_max} * config.width);
    previous_outputs = float_buffer(std::size_t{mtp_drafts_max} * config.width);
  }
  if (config.kind->gates_attention) query_gate = float_buffer(how.rows_max * widest_of(config).queries);
  if (config.kind->adds_mixture() && config.experts != 0) {
    beside = float_buffer(std::size_t{how.rows_max} * config.width);
    to_router = float_buffer(std::size_t{how.rows_max} * config.width);
  }
  if (config.kind->normalises_values) ones.assign(architecture::head_dim_max, 1);
}

std::span<const float> transformer::forward(std::span<const run> batch) {
  state& s = *state_;
  if (forward_body(batch) == 0) return {};
  s.timed(s.spent.head, [&] { s.make_logits(s.w->output_head(), s.normed.data(), s.rows); });
  return {s.logits.data(), s.rows * s.config.vocabulary};
}

std::span<const float> transformer::logits_of(std::span<const std::uint32_t> rows) {
  state& s = *state_;
  s.timed(s.spent.head, [&] { s.make_logits(s.w->output_head(), s.picked_rows(rows), rows.size()); });
  return {s.logits.data(), rows.size() * s.config.vocabulary};
}

std::span<const kernels::row_best> transformer::best_of(std::span<const std::uint32_t> rows) {
  state& s = *state_;
  s.best.assign(rows.size(), {});
  s.timed(s.spent.head, [&] {
    if (s.config.logit_multiplier() == 1 && s.config.logit_cap == 0) {
      return s.products.find_best(s.picked_rows(rows), rows.size(), s.w->output_head(), s.best);
    }
    s.make_logits(s.w->output_head(), s.picked_rows(rows), rows.size());
    s.products.for_rows(rows.size(), [&](std::size_t row) {
      s.best[row] = s.table.best_of_row(s.logits.data() + row * s.config.vocabulary, s.config.vocabulary);
    });
  });
  return s.best;
}

kernels::row_best transformer::best_of_row(std::span<const float> logits) const {
  return state_->table.best_of_row(logits.data(), logits.size());
}

std::size_t transformer::head_step_rows() const { return state_->table.rows_beside_reading; }

std::size_t transformer::forward_body(std::span<const run> batch) {
  state& s = *state_;
  const weights& w = *s.w;
  s.timed(s.spent.prepare, [&] { s.prepare(batch); });
  if (s.rows == 0) return 0;
  s.timed(s.spent.prepare, [&] { s.embed(); });
  if (s.inputs) s.timed(s.spent.prepare, [&] { s.inputs->begin(w, s.tokens, s.x.data()); });
  s.timed(s.spent.norms, [&] { s.normalise(w.layers.front().attention_norm); });
  if (s.recurrent) s.recurrent->begin(batch);
  if (s.mtp) s.mtp->begin(batch);
  for (std::size_t layer = 0; layer < s.config.layers; ++layer) {
    switch (s.config.kind_of(layer)) {
      case architecture::layer_kind::full:
      case architecture::layer_kind::window:
        s.remember_and_attend(layer);
        break;
      case architecture::layer_kind::recurrent:
        s.follow_state(layer);
        break;
    }
    if (s.rows == 0) return 0;  // only KV was requested
    s.add_feed_forward(layer);
  }
  if (s.mtp) s.follow_mtp();
  return s.rows;
}

/// Stores keys and values of all rows in the MTP layer. Then drops the rows that want no logits.
void transformer::state::follow_mtp() {
  const std::size_t layer = config.layers;
  const layer_weights& l = w->layers[layer];
  timed(spent.mtp, [&] {
    mtp->read(*w, tokens, normed.data(), x.data());
    normalise(l.attention_norm);
    multiply(normed.data(), {{l.key, key.data()}, {l.value, value.data()}});
    normalise_keys(layer);
    attention.store(layer, key.data(), value.data());
  });
  for (std::size_t to = 0; to < wanted_rows.size(); ++to)
    std::copy_n(mtp->outputs() + wanted_rows[to] * config.width, config.width, normed.data() + to * config.width);
  rows = wanted_rows.size();
}

void transformer::begin_drafts(std::span<const run> batch, std::span<const mtp_start> starts) {
  state& s = *state_;
  REDLINE_ASSERT(s.mtp && starts.size() <= mtp_drafts_max, "the model has an MTP layer with room for the drafts");
  std::vector<std::size_t> first_rows;
  std::size_t rows = 0;
  for (const run& r : batch) first_rows.push_back(std::exchange(rows, rows + r.tokens.size()));
  s.drafts.clear();
  for (const auto& [run_index, row] : starts) {
    const run& after = batch[run_index];
    state::drafting& d = s.drafts.emplace_back();
    // The tokens up to the row, except for the first one, which has no output before it.
    std::uint32_t left = static_cast<std::uint32_t>(after.first_position) + row;
    for (kv::piece piece : after.table) {
      if (d.table.empty()) {
        ++piece.first_slot;
        --piece.count;
      }
      piece.count = std::min(piece.count, left);
      left -= piece.count;
      d.table.push_back(piece);
    }
    std::erase_if(d.table, [](const kv::piece& p) { return p.count == 0; });
    const auto own =
        static_cast<std::uint32_t>(s.attention.first_draft_slot() + (s.drafts.size() - 1) * mtp_tokens_max);
    d.table.push_back({own, 0, after.table.back().offset});
    d.next_position = after.first_position + static_cast<position>(row) + 1;
    std::copy_n(s.mtp->outputs() + (first_rows[run_index] + row) * s.config.width, s.config.width,
                s.draft_outputs.data() + (s.drafts.size() - 1) * s.config.width);
  }
}

std::span<const float> transformer::draft(std::span<const mtp_row> rows) {
  state& s = *state_;
  const std::size_t width = s.config.width, layer = s.config.layers;
  std::vector<run> batch;
  for (const mtp_row& r : rows) {
    state::drafting& d = s.drafts[r.draft];
    REDLINE_ASSERT(d.table.back().count < mtp_tokens_max, "a draft has room for its rows");
    ++d.table.back().count;
    std::copy_n(s.draft_outputs.data() + r.draft * width, width, s.previous_outputs.data() + batch.size() * width);
    batch.push_back({.tokens = {&r.next, 1}, .first_position = d.next_position++, .table = d.table});
  }
  s.prepare(batch);
  s.mtp->combine(*s.w, s.tokens, s.previous_outputs.data(), s.x.data());
  s.normalise(s.w->layers[layer].attention_norm);
  s.remember_and_attend(layer);
  s.add_feed_forward(layer);
  for (std::size_t i = 0; i < rows.size(); ++i)
    std::copy_n(s.normed.data() + i * width, width, s.draft_outputs.data() + rows[i].draft * width);
  s.make_logits(s.w->mtp.head, s.normed.data(), s.rows);
  return {s.logits.data(), s.rows * s.w->mtp.head.rows()};
}

std::uint32_t transformer::mtp_vocabulary() const { return static_cast<std::uint32_t>(state_->w->mtp.head.rows()); }

/// The first half of a layer with attention: leaves its output in delta. In the last layer, rows that want no logits
/// are dropped.
void transformer::state::remember_and_attend(std::size_t layer) {
  const layer_weights& l = w->layers[layer];
  const layer_sizes& of = attention.sizes_of(layer);
  const bool last = drops_rows(layer);
  timed(spent.query_key_value, [&] { make_queries_keys_values(layer); });
  if (config.head_norms() != architecture::head_norm::none) {
    timed(spent.norms, [&] {
      normalise_queries(layer);
      if (of.keeps_tokens) normalise_keys(layer);
    });
  }
  attention.scale_queries(layer, query.data());
  if (of.keeps_tokens) timed(spent.store, [&] { attention.store(layer, key.data(), value.data()); });
  if (last && wanted_rows.empty()) {
    rows = 0;
    return;
  }
  timed(spent.attention, [&] { attention.attend(layer, last, query.data(), attended.data()); });
  if (config.kind->gates_attention) {
    for_rows([&](std::size_t row) {
      table.sigmoid_multiply(query_gate.data() + row * of.query_width, attended.data() + row * of.query_width,
                             of.query_width);
    });
  }
  if (last) keep_wanted_rows(attended.data(), of.query_width);
  timed(spent.output, [&] {
    const float* seen = latents ? latents->write(l, attended.data(), rows) : attended.data();
    multiply(seen, {{l.output, delta.data(), or_null(l.output_bias)}});
  });
}

/// The first half of a recurrent layer, likewise.
void transformer::state::follow_state(std::size_t layer) {
  const layer_weights& l = w->layers[layer];
  const bool last = drops_rows(layer);
  float* mixed = nullptr;
  timed(spent.recurrence, [&] { mixed = recurrent->compute(attention.sizes_of(layer).place, l, normed.data(), rows); });
  if (last && wanted_rows.empty()) {
    rows = 0;
    return;
  }
  if (last) keep_wanted_rows(mixed, recurrent->output_width());
  timed(spent.output, [&] { multiply(mixed, {{l.output, delta.data()}}); });
}

/// Adds the output of the first half, then that of the second half.
void transformer::state::add_feed_forward(std::size_t layer) {
  const layer_weights& l = w->layers[layer];
  timed(spent.norms, [&] {
    if (l.reads_one_norm()) return add(l.attention_post_norm);
    add_and_normalise(l.attention_post_norm, l.feed_forward_norm);
  });
  const bool has_both = l.feed_forward.down.rows() != 0 && !l.mixture.experts.empty();
  timed(spent.feed_forward, [&] {
    if (has_both) return add_mixture(l);
    hidden.compute(l, normed.data(), rows, delta.data());
  });
  const norm_weights& next = norm_after(layer);
  if (!inputs && l.scale == 1) {
    timed(spent.norms, [&] { add_and_normalise(l.feed_forward_post_norm, next); });
    return;
  }
  timed(spent.norms, [&] { add(l.feed_forward_post_norm); });
  const std::span<const std::uint32_t> wanted =
      drops_rows(layer) ? std::span<const std::uint32_t>(wanted_rows) : std::span<const std::uint32_t>();
  if (inputs) timed(spent.feed_forward, [&] { inputs->add(layer, l, wanted, rows, x.data()); });
  timed(spent.norms, [&] {
    for_rows([&](std::size_t row) {
      float* const of_row = x.data() + row * config.width;
      for (std::size_t i = 0; i < config.width; ++i) of_row[i] *= l.scale;
      normalise_row(next, of_row, normed.data() + row * config.width);
    });
  });
}

/// delta = the dense part's output + the mixture's, each normalized. The mixture and its router read the same rows as
/// the dense part, normalized by norms of their own.
void transformer::state::add_mixture(const layer_weights& l) {
  hidden.compute_dense(l, normed.data(), rows, delta.data());
  for_rows([&](std::size_t row) {
    const std::size_t at = row * config.width;
    normalise_row(l.dense_post_norm, delta.data() + at, delta.data() + at);
    normalise_row(l.expert_norm, x.data() + at, normed.data() + at);
    normalise_row(l.router_norm, x.data() + at, to_router.data() + at);
  });
  hidden.compute(l, normed.data(), rows, beside.data(), to_router.data());
  for_rows([&](std::size_t row) {
    const std::size_t at = row * config.width;
    normalise_row(l.expert_post_norm, beside.data() + at, beside.data() + at);
    table.add_scaled(delta.data() + at, 1, beside.data() + at, config.width);
  });
}

/// Copies the chosen rows that want logits, consecutively.
const float* transformer::state::picked_rows(std::span<const std::uint32_t> which) {
  picked.grow(which.size() * config.width);
  for (std::size_t i = 0; i < which.size(); ++i) {
    REDLINE_ASSERT(which[i] < rows, "the row wants logits");
    std::copy_n(normed.data() + std::size_t{which[i]} * config.width, config.width, picked.data() + i * config.width);
  }
  return picked.data();
}

/// from: [count, width], normalized.
void transformer::state::make_logits(const kernels::packed_weights& head, const float* from, std::size_t count) {
  products.multiply(from, count, {{head, logits.data()}});
  if (config.logit_multiplier() == 1 && config.logit_cap == 0) return;
  products.for_rows(count, [&](std::size_t row) {
    const std::span of_row(logits.data() + row * head.rows(), head.rows());
    if (config.logit_multiplier() != 1) {
      for (float& logit : of_row) logit *= config.logit_multiplier();
    }
    if (config.logit_cap != 0) table.soft_cap(of_row.data(), config.logit_cap, of_row.size());
  });
}

/// Runs body and, if profiling is on, adds the time it took.
template<class Body>
void transformer::state::timed(double& seconds, Body body) {
  if (!how.profile) return body();
  const auto start = std::chrono::steady_clock::now();
  body();
  seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void transformer::state::prepare(std::span<const run> batch) {
  attention.begin(batch);
  tokens.clear();
  wanted_rows.clear();
  for (const run& r : batch) {
    const auto first = static_cast<std::uint32_t>(tokens.size());
    tokens.insert(tokens.end(), r.tokens.begin(), r.tokens.end());
    for (std::size_t i = r.logits_begin; i < r.tokens.size(); ++i)
      wanted_rows.push_back(first + static_cast<std::uint32_t>(i));
  }
  rows = tokens.size();
  REDLINE_ASSERT(rows <= how.rows_max, "a batch has at most rows_max rows");
  REDLINE_ASSERT(wanted_rows.size() <= how.logits_rows_max, "a batch has at most logits_rows_max rows with logits");
}

template<class Body>
void transformer::state::for_rows(Body body) {
  products.for_rows(rows, body);
}

void transformer::state::embed() {
  for_rows([&](std::size_t row) {
    REDLINE_ASSERT(tokens[row] >= 0 && static_cast<std::uint32_t>(tokens[row]) < config.vocabulary,
                   "the token is within the vocabulary");
    float* to = x.data() + row * config.width;
    table.unpack_row(w->embedding.view(), static_cast<std::size_t>(tokens[row]), to);
    if (config.embedding_scale == 1) return;
    for (std::size_t i = 0; i < config.width; ++i) to[i] *= config.embedding_scale;
  });
}

/// to = norm(from), one row; a copy if there is no norm.
void transformer::state::normalise_row(const norm_weights& norm, const float* from, float* to) {
  if (norm.scale.empty()) {
    if (from != to) std::copy_n(from, config.width, to);
  } else if (config.kind->norm == architecture::norm_kind::rms) {
    table.rms_norm(from, norm.scale.data(), config.norm_epsilon, config.width, to);
  } else {
    table.layer_norm(from, norm.scale.data(), norm.shift.data(), config.norm_epsilon, config.width, to);
  }
}

/// normed = norm(x)
void transformer::state::normalise(const norm_weights& norm) {
  for_rows(
      [&](std::size_t row) { normalise_row(norm, x.data() + row * config.width, normed.data() + row * config.width); });
}

/// x += residual_scale * post_norm(delta)
void transformer::state::add_row(std::size_t row, const norm_weights& post_norm) {
  float* more = delta.data() + row * config.width;
  normalise_row(post_norm, more, more);
  table.add_scaled(x.data() + row * config.width, config.residual_scale, more, config.width);
}

void transformer::state::add(const norm_weights& post_norm) {
  for_rows([&](std::size_t row) { add_row(row, post_norm); });
}

/// add_row for every row, then normed = next(x)
void transformer::state::add_and_normalise(const norm_weights& post_norm, const norm_weights& next) {
  for_rows([&](std::size_t row) {
    add_row(row, post_norm);
    normalise_row(next, x.data() + row * config.width, normed.data() + row * config.width);
  });
}

void transformer::state::multiply(const float* rows_of_x, std::initializer_list<row_products::product> those) {
  products.multiply(rows_of_x, rows, those);
}

void transformer::state::make_queries_keys_values(std::size_t layer) {
  const layer_weights& l = w->layers[layer];
  if (latents) return latents->read(l, normed.data(), rows, query.data(), key.data(), value.data());
  if (config.kind->gates_attention) {
    return multiply(
        normed.data(),
        {{l.query, query.data()}, {l.query_gate, query_gate.data()}, {l.key, key.data()}, {l.value, value.data()}});
  }
  if (!attention.sizes_of(layer).keeps_tokens) return multiply(normed.data(), {{l.query, query.data()}});
  if (config.varied && l.value.rows() == 0) {
    multiply(normed.data(), {{l.query, query.data()}, {l.key, key.data()}});
    const std::size_t width = attention.sizes_of(layer).kv_width;
    return for_rows([&](std::size_t row) { std::copy_n(key.data() + row * width, width, value.data() + row * width); });
  }
  multiply(normed.data(), {{l.query, query.data(), or_null(l.query_bias)},
                           {l.key, key.data(), or_null(l.key_bias)},
                           {l.value, value.data(), or_null(l.value_bias)}});
}

/// Normalizes the heads in a row of queries or keys.
void transformer::state::normalise_parts(std::size_t layer, float* heads, std::size_t width,
                                         const std::vector<float>& weight) {
  const std::size_t part =
      config.head_norms() == architecture::head_norm::row ? width : attention.sizes_of(layer).head_dim;
  for (std::size_t at = 0; at < width; at += part) {
    const float* scale = weight.data() + at % weight.size();
    if (config.kind->norm == architecture::norm_kind::rms) {
      table.rms_norm(heads + at, scale, config.norm_epsilon, part, heads + at);
    } else {
      table.layer_norm(heads + at, scale, w->layers[layer].head_shift.data(), config.norm_epsilon, part, heads + at);
    }
  }
}

void transformer::state::normalise_queries(std::size_t layer) {
  const std::size_t width = attention.sizes_of(layer).query_width;
  for_rows(
      [&](std::size_t row) { normalise_parts(layer, query.data() + row * width, width, w->layers[layer].query_norm); });
}

/// Values, too, if the family normalizes them.
void transformer::state::normalise_keys(std::size_t layer) {
  const layer_sizes& of = attention.sizes_of(layer);
  for_rows([&](std::size_t row) {
    normalise_parts(layer, key.data() + row * of.kv_width, of.kv_width, w->layers[layer].key_norm);
    for (std::size_t at = 0; at < of.kv_width && !ones.empty(); at += of.head_dim) {
      float* const head = value.data() + row * of.kv_width + at;
      table.rms_norm(head, ones.data(), config.norm_epsilon, of.head_dim, head);
    }
  });
}

/// After the last first half a row matters only for its own logits: drops the rows that want none. read: [rows,
/// read_width], what the output projection reads.
void transformer::state::keep_wanted_rows(float* read, std::size_t read_width) {
  for (std::size_t to = 0; to < wanted_rows.size();
       ++to) {  // ascending, so a row never overwrites one that is still needed
    const std::size_t from = wanted_rows[to];
    if (from == to) continue;
    std::copy_n(x.data() + from * config.width, config.width, x.data() + to * config.width);
    std::copy_n(read + from * read_width, read_width, read + to * read_width);
    if (!w->layers[config.layers - 1].reads_one_norm())
      continue;  // otherwise the feed-forward part reads attention's input
    std::copy_n(normed.data() + from * config.width, config.width, normed.data() + to * config.width);
  }
  rows = wanted_rows.size();
}

void transformer::move_tokens(std::span<const kv::token_move> moves) { state_->attention.move(moves); }

void transformer::copy_states(std::span<const kv::state_copy> copies) {
  if (state_->recurrent) state_->recurrent->copy(copies);
  if (state_->mtp) state_->mtp->copy(copies);
}

std::vector<float> transformer::key_at(std::uint32_t layer, std::uint32_t slot) const {
  return state_->attention.key_at(layer, slot);
}

result<std::unique_ptr<transformer>> transformer::create(std::shared_ptr<const weights> w,
                                                         const kernels::kernel_table& table, kernels::worker_team& team,
                                                         options how) {
  REDLINE_ASSERT(w != nullptr && w->table == &table, "weights are packed for the table that multiplies them");
  if (window_of(w->config) == 0) how.window_pages_count = 0;
  if (w->config.has_states() && how.state_slots == 0) {
    return failure{errc::unsupported_format, "the layers of a " + std::string(w->config.family_name()) +
                                                 " model keep states of sequences, which only a served model can have; "
                                                 "expected a model whose layers all have attention"};
  }
  const std::uint64_t bytes = page_bytes(w->config, how.kv);
  constexpr std::uint64_t slots_max = std::uint64_t{1} << 32;
  if (how.rows_max == 0 ||
      std::uint64_t{std::max(how.pages_count, how.window_pages_count)} * kv::page_tokens > slots_max ||
      (bytes != 0 &&
       std::uint64_t{how.pages_count} + how.window_pages_count > std::numeric_limits<std::int64_t>::max() / bytes)) {
    return failure{errc::invalid_argument, "transformer: " + std::to_string(how.pages_count) + " pages of " +
                                               std::to_string(bytes) + " bytes and " + std::to_string(how.rows_max) +
                                               " rows: expected at least one row and storage that can be addressed"};
  }
  how.logits_rows_max = how.logits_rows_max == 0 ? how.rows_max : std::min(how.logits_rows_max, how.rows_max);
  try {
    return std::unique_ptr<transformer>(new transformer(std::make_unique<state>(std::move(w), table, team, how)));
  } catch (const std::bad_alloc&) {
    return failure{errc::io_error, "transformer: no memory for " + std::to_string(how.pages_count) + " KV pages of " +
                                       std::to_string(bytes) + " bytes; reduce them with --kv-mib"};
  }
}

transformer::transformer(std::unique_ptr<state> s) : state_(std::move(s)) {}
transformer::~transformer() = default;

const model_shape& transformer::config() const { return state_->config; }
kernels::worker_team& transformer::team() const { return state_->team; }
kv::pool_size transformer::size() const {
  const bool has_windows = state_->how.window_pages_count != 0;
  kv::pool_size size{state_->how.pages_count, state_->how.window_pages_count,
                     has_windows ? window_of(state_->config) : 0};
  if (state_->recurrent) {
    size.state_slots = state_->how.state_slots;
    size.state_copies = state_->how.state_copies;
    size.state_records = state_->how.records_max;
  }
  return size;
}
std::uint32_t transformer::rows_max() const { return state_->how.rows_max; }
std::uint32_t transformer::logits_rows_max() const { return state_->how.logits_rows_max; }
const transformer::times& transformer::time_spent() const { return state_->spent; }
const expert_use& transformer::experts() const { return state_->hidden.use(); }

}  // namespace redline::model
