#include "runtime/model/transformer.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/machine/memory.hpp"
#include "runtime/base/portable_math.hpp"
#include "runtime/model/feed_forward.hpp"
#include "runtime/model/kv_moves.hpp"
#include "runtime/model/latent_projections.hpp"
#include "runtime/model/layer_inputs.hpp"
#include "runtime/model/mtp_inputs.hpp"
#include "runtime/model/recurrent_layers.hpp"
#include "runtime/model/rope_cache.hpp"
#include "runtime/model/row_products.hpp"
#include "runtime/model/weights.hpp"

namespace redline::model {
namespace {

using kernels::attention_tile;

/// A run, prepared for the kernels.
struct prepared_run {
  std::uint32_t first_row = 0;
  std::uint32_t row_count = 0;
  std::uint32_t logits_begin = 0;
  std::uint32_t first_token = 0;                // index in the table of the first row's token
  std::array<std::size_t, 2> tiles_begin = {};  // in state::tiles, by storage
  std::array<std::size_t, 2> tiles_end = {};
  std::size_t angles_begin = 0;  // in state::query_angles: [offset_count][row_count]
  std::uint32_t offset_count = 0;
};

/// Rows [row_begin, row_end) of a run, which are attended together.
struct row_block {
  std::uint32_t run = 0;
  std::uint32_t row_begin = 0;
  std::uint32_t row_end = 0;
};

/// One cache for layers that see all tokens, and another if layers with a window rotate differently.
std::vector<rope_cache> make_ropes(const model_shape& config, std::span<const float> factors) {
  std::vector<rope_cache> ropes;
  ropes.emplace_back(config, factors);
  if (config.window_rope_base == 0) return ropes;
  model_shape windowed = config;
  windowed.rope_base = config.window_rope_base;
  if (config.varied) {
    windowed.head_dim = config.varied->window_head_dim;
    windowed.rotary_dim = config.varied->window_rotary_dim;
  }
  windowed.rope_position_scale = 1;
  windowed.yarn.reset();
  windowed.rope_magnitude = 1;
  ropes.emplace_back(windowed, std::span<const float>());
  return ropes;
}

/// The distance from one head's keys and values in a page to the next one's. It is not a multiple of 4 KiB, so that
/// page sizes are not either. Otherwise a head's keys and values would map to a few sets of a cache, and the prefetched
/// block would evict the current one.
std::uint64_t head_stride(std::uint32_t head_dim, kv_type type) {
  const std::uint64_t bytes = kernels::kv_head_bytes(type, head_dim);
  return bytes % 4096 == 0 ? bytes + 64 : bytes;
}

/// The sizes of a layer's attention, and where its keys and values are in a page.
struct layer_sizes {
  std::uint32_t kv_heads = 0;
  std::uint32_t group = 0;  // heads that read one KV head
  std::uint32_t head_dim = 0;
  std::uint32_t rotated = 0;
  std::size_t query_width = 0;
  std::size_t kv_width = 0;
  std::uint64_t stride = 0;   // bytes from one KV head to the next in a page
  std::size_t place = 0;      // bytes of the page before the layer's; for recurrent layers the number of earlier ones
  bool keeps_tokens = false;  // otherwise another layer has its keys and values
};

layer_sizes sizes_of(const model_shape& config, std::size_t layer, kv_type type) {
  const model_shape one = config.of_layer(layer);
  return {.kv_heads = one.kv_heads,
          .group = one.heads / one.kv_heads,
          .head_dim = one.head_dim,
          .rotated = one.rotated(),
          .query_width = std::size_t{one.heads} * one.head_dim,
          .kv_width = std::size_t{one.kv_heads} * one.head_dim,
          .stride = head_stride(one.head_dim, type),
          .keeps_tokens = config.keeps_tokens(layer)};
}

/// The widest rows of queries and of keys, and so of values.
struct widest {
  std::size_t queries = 0, keys = 0;
};
widest widest_of(const model_shape& config) {
  widest most{std::size_t{config.heads} * config.head_dim, std::size_t{config.kv_heads} * config.head_dim};
  for (std::size_t layer = 0; layer < config.layers; ++layer) {
    const layer_sizes of = sizes_of(config, layer, kv_type::f32);
    most.queries = std::max(most.queries, of.query_width);
    most.keys = std::max(most.keys, of.kv_width);
  }
  return most;
}

/// Bytes of a page, of the layers with a window or of all.
std::uint64_t bytes_of_layers(const model_shape& config, kv_type type, bool only_windows) {
  std::uint64_t bytes = 0;
  for (std::size_t layer = 0; layer < config.read_layers(); ++layer) {
    if (!config.keeps_tokens(layer)) continue;
    if (only_windows && config.kind_of(layer) != architecture::layer_kind::window) continue;
    const layer_sizes of = sizes_of(config, layer, type);
    bytes += of.kv_heads * of.stride;
  }
  return bytes;
}

/// Pages for the rows of drafts, after those of sequences.
std::uint32_t draft_pages(const model_shape& config) {
  return config.has_mtp() ? mtp_drafts_max * mtp_tokens_max / kv::page_tokens : 0;
}

/// The kernels list the pairings of dimensions in the same order.
kernels::rope_pairs pairs_of(const model_shape& config) {
  using architecture::rope_pairs;
  static_assert(static_cast<int>(rope_pairs::adjacent) == static_cast<int>(kernels::rope_pairs::adjacent));
  static_assert(static_cast<int>(rope_pairs::half_split) == static_cast<int>(kernels::rope_pairs::half_split));
  static_assert(architecture::head_dim_max == kernels::rotary_dim_max);
  static_assert(architecture::cached_dim_max == kernels::head_dim_max);
  return static_cast<kernels::rope_pairs>(config.kind->pairs);
}

}  // namespace

struct transformer::state {
  state(std::shared_ptr<const weights> the_weights, const kernels::kernel_table& the_table,
        kernels::worker_team& the_team, const options& how);

  // Preparation before the layers.
  void prepare(std::span<const run> batch);
  void prepare_run(const run& r);
  void append_slots(const run& r);
  void append_windows(const run& r, prepared_run& p);
  void append_tiles(std::span<const kv::piece> pieces, std::uint32_t first_token, std::size_t storage, prepared_run& p);
  void split_into_blocks(std::uint32_t run_index);
  void reserve_scratch();
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
  [[nodiscard]] float query_scale(std::int64_t position) const;
  void scale_queries(std::size_t layer);
  void store_keys_and_values(std::size_t layer);
  [[nodiscard]] kernels::attention_args attention_of(std::size_t layer, const row_block& block,
                                                     std::size_t kv_head) const;
  void attend(std::size_t layer, std::span<const row_block> blocks);
  bool split_contexts(std::size_t layer, std::span<const row_block> blocks);
  void keep_wanted_rows(float* read, std::size_t read_width);
  const float* picked_rows(std::span<const std::uint32_t> which);
  void make_logits(const kernels::packed_weights& head, const float* from, std::size_t count);

  template<class Body>
  void for_rows(Body body);
  template<class Body>
  void timed(double& seconds, Body body);
  [[nodiscard]] kernels::kv_view kv_of(std::size_t layer, std::size_t kv_head) const;
  /// Whether rows that want no logits are dropped in the layer, because no later one needs them.
  [[nodiscard]] bool drops_rows(std::size_t layer) const { return layer + 1 == config.layers && !mtp; }
  [[nodiscard]] const norm_weights& norm_after(std::size_t layer) const {
    if (layer + 1 < config.layers) return w->layers[layer + 1].attention_norm;
    return layer + 1 == config.layers ? w->output_norm : w->mtp.output_norm;
  }
  /// Index in `forms` and in lists of blocks: 1 for layers with a window.
  [[nodiscard]] std::size_t form_of(std::size_t layer) const { return config.window_of(layer) != 0 ? 1 : 0; }
  /// Index in `kv`: 1 if layers with a window have separate storage and this is one of them.
  [[nodiscard]] std::size_t storage_of(std::size_t layer) const {
    return how.window_pages_count != 0 && config.window_of(layer) != 0 ? 1 : 0;
  }
  [[nodiscard]] std::uint64_t slots_count(std::size_t storage) const {
    return std::uint64_t{storage == 0 ? how.pages_count + draft_pages(config) : how.window_pages_count} *
           kv::page_tokens;
  }
  /// Index in `ropes`.
  [[nodiscard]] std::size_t rope_of(std::size_t layer) const {
    return ropes.size() > 1 && config.window_of(layer) != 0 ? 1 : 0;
  }

  std::shared_ptr<const weights> w;
  const model_shape& config;
  const kernels::kernel_table& table;
  kernels::worker_team& team;
  options how;
  row_products products;
  feed_forward hidden;
  std::optional<latent_projections> latents;
  std::optional<recurrent_layers> recurrent;
  std::optional<layer_inputs> inputs;
  std::optional<mtp_inputs> mtp;
  std::vector<rope_cache> ropes;
  std::array<std::uint64_t, 2> bytes_of_page;  // by storage
  std::array<kernels::memory_block, 2> kv;     // page by page, each [layers of the storage][kv head] of kv_head_bytes
  std::vector<layer_sizes> sizes;
  std::array<const layer_sizes*, 2> forms = {};  // of a layer of each form, by form_of; null if there is none
  times spent;

  // Activations of the current rows, each as wide as its layer has it.
  float_buffer x, normed, query, key, value, attended, delta;
  float_buffer query_gate;         // [rows, query_width], if the family gates attention
  float_buffer beside, to_router;  // [rows, width], if mixtures stand beside dense parts
  std::vector<float> ones;         // weights of a norm without weights, if the family normalizes values
  float_buffer logits;
  float_buffer picked;                  // rows of one step of the output head
  std::vector<kernels::row_best> best;  // for these rows
  std::vector<float_buffer> scratch;    // one per worker
  std::size_t rows = 0;                 // rows in the activations: all, then only those that want logits

  // The current batch, as set by `prepare`.
  std::vector<prepared_run> runs;
  std::vector<token> tokens;                        // by row
  std::array<std::vector<std::uint32_t>, 2> slots;  // by storage, by row
  std::array<std::vector<kernels::rope_angles>, 2> key_angles,
      query_angles;                                  // indexed as `ropes`: by row; by run, offset, row
  std::array<std::vector<attention_tile>, 2> tiles;  // by storage, by run, in token order
  std::vector<float> query_scales;                   // by row; empty if none is scaled
  std::vector<std::int32_t> offsets;                 // distinct offsets of the current run
  // Blocks of all rows, and of only those that want logits, by form_of.
  std::array<std::vector<row_block>, 2> blocks, wanted_blocks;
  struct kv_split {
    std::size_t attention;  // index in split_calls
    std::size_t index;
  };
  std::vector<kernels::attention_args> split_calls;  // calls for one layer, if contexts are split
  std::vector<kv_split> kv_splits;
  float_buffer split_records;
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
      hidden(config, products, how.rows_max),
      ropes(make_ropes(config, w->rope_factors)),
      bytes_of_page({page_bytes(config, how.kv) - (how.window_pages_count == 0 ? 0 : window_page_bytes(config, how.kv)),
                     window_page_bytes(config, how.kv)}),
      kv({kernels::memory_block((std::size_t{how.pages_count} + draft_pages(config)) * bytes_of_page[0]),
          kernels::memory_block(how.window_pages_count * bytes_of_page[1])}),
      x(std::size_t{how.rows_max} * config.width),
      normed(std::size_t{how.rows_max} * config.width),
      query(how.rows_max * widest_of(config).queries),
      key(how.rows_max * widest_of(config).keys),
      value(how.rows_max * widest_of(config).keys),
      attended(how.rows_max * widest_of(config).queries),
      delta(std::size_t{how.rows_max} * config.width),
      logits(std::size_t{how.logits_rows_max} * config.vocabulary),
      scratch(team.size()) {
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
  std::array<std::size_t, 2> bytes_before = {};
  std::size_t recurrent_before = 0;
  for (std::size_t layer = 0; layer < config.read_layers(); ++layer) {
    layer_sizes& of = sizes.emplace_back(sizes_of(config, layer, how.kv));
    if (config.is_recurrent(layer)) {
      of.place = recurrent_before++;
    } else if (of.keeps_tokens) {
      of.place = bytes_before[storage_of(layer)];
      bytes_before[storage_of(layer)] += of.kv_heads * of.stride;
    } else {
      of.place = sizes[config.kv_layer_of(layer)].place;
    }
  }
  for (std::size_t layer = 0; layer < config.layers; ++layer) {
    if (!config.is_recurrent(layer)) forms[form_of(layer)] = &sizes[layer];
  }
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
    store_keys_and_values(layer);
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
        static_cast<std::uint32_t>(s.how.pages_count * kv::page_tokens + (s.drafts.size() - 1) * mtp_tokens_max);
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
  const bool last = drops_rows(layer);
  timed(spent.query_key_value, [&] { make_queries_keys_values(layer); });
  if (config.head_norms() != architecture::head_norm::none) {
    timed(spent.norms, [&] {
      normalise_queries(layer);
      if (sizes[layer].keeps_tokens) normalise_keys(layer);
    });
  }
  if (!query_scales.empty()) scale_queries(layer);
  if (sizes[layer].keeps_tokens) timed(spent.store, [&] { store_keys_and_values(layer); });
  if (last && wanted_rows.empty()) {
    rows = 0;
    return;
  }
  timed(spent.attention, [&] { attend(layer, (last ? wanted_blocks : blocks)[form_of(layer)]); });
  const std::size_t width = sizes[layer].query_width;
  if (config.kind->gates_attention) {
    for_rows([&](std::size_t row) {
      table.sigmoid_multiply(query_gate.data() + row * width, attended.data() + row * width, width);
    });
  }
  if (last) keep_wanted_rows(attended.data(), width);
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
  timed(spent.recurrence, [&] { mixed = recurrent->compute(sizes[layer].place, l, normed.data(), rows); });
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
  runs.clear();
  tokens.clear();
  for (auto& each : slots) each.clear();
  for (auto& angles : key_angles) angles.clear();
  for (auto& angles : query_angles) angles.clear();
  for (auto& each : tiles) each.clear();
  query_scales.clear();
  for (auto* both : {&blocks, &wanted_blocks}) {
    for (auto& each : *both) each.clear();
  }
  wanted_rows.clear();
  for (rope_cache& each : ropes) each.forget_if_large();
  for (const run& r : batch) {
    if (!r.tokens.empty()) prepare_run(r);
  }
  rows = tokens.size();
  REDLINE_ASSERT(rows <= how.rows_max, "a batch has at most rows_max rows");
  reserve_scratch();
  REDLINE_ASSERT(wanted_rows.size() <= how.logits_rows_max, "a batch has at most logits_rows_max rows with logits");
}

void transformer::state::prepare_run(const run& r) {
  prepared_run p;
  p.first_row = static_cast<std::uint32_t>(tokens.size());
  p.row_count = static_cast<std::uint32_t>(r.tokens.size());
  p.logits_begin = std::min(r.logits_begin, p.row_count);
  std::uint32_t token_count = 0;
  for (const kv::piece& piece : r.table) token_count += piece.count;
  REDLINE_ASSERT(token_count >= p.row_count, "a run's table ends with the run's own slots");
  p.first_token = token_count - p.row_count;

  tokens.insert(tokens.end(), r.tokens.begin(), r.tokens.end());
  append_slots(r);
  offsets.clear();
  append_tiles(r.table, 0, 0, p);
  if (how.window_pages_count != 0) append_windows(r, p);
  p.angles_begin = query_angles[0].size();
  p.offset_count = static_cast<std::uint32_t>(offsets.size());
  for (const std::int32_t offset : offsets) {
    for (std::uint32_t i = 0; i < p.row_count; ++i) {
      const std::int64_t at = std::int64_t{r.first_position} + i - offset;
      for (std::size_t kind = 0; kind < ropes.size(); ++kind) query_angles[kind].push_back(ropes[kind].at(at));
    }
  }
  if (config.temperature_scale != 0) {
    for (std::uint32_t i = 0; i < p.row_count; ++i)
      query_scales.push_back(query_scale(std::int64_t{r.first_position} + i));
  }
  for (std::uint32_t i = p.logits_begin; i < p.row_count; ++i) wanted_rows.push_back(p.first_row + i);
  runs.push_back(p);
  split_into_blocks(static_cast<std::uint32_t>(runs.size() - 1));
}

/// Finds the slots and rotations of the run's own keys. A key at position p in a piece with an offset is rotated for p
/// - offset, so that all keys of a piece agree.
void transformer::state::append_slots(const run& r) {
  const std::size_t first = slots[0].size();
  slots[0].resize(first + r.tokens.size());
  for (std::size_t kind = 0; kind < ropes.size(); ++kind) key_angles[kind].resize(slots[0].size());
  std::size_t left = r.tokens.size();
  for (std::size_t i = r.table.size(); left > 0; --i) {
    const kv::piece& piece = r.table[i - 1];
    for (std::uint32_t j = piece.count; j > 0 && left > 0; --j) {
      --left;
      slots[0][first + left] = piece.first_slot + j - 1;
      REDLINE_ASSERT(slots[0][first + left] < slots_count(0), "the slot is within the storage");
      const std::int64_t at = std::int64_t{r.first_position} + static_cast<std::int64_t>(left) - piece.offset;
      for (std::size_t kind = 0; kind < ropes.size(); ++kind) key_angles[kind][first + left] = ropes[kind].at(at);
    }
  }
}

/// Finds the slots of the run's own keys in the storage of layers with a window, and the tiles there.
void transformer::state::append_windows(const run& r, prepared_run& p) {
  std::uint32_t token_count = 0;
  for (const kv::piece& piece : r.window_table) token_count += piece.count;
  const std::uint32_t end = p.first_token + p.row_count;
  const std::size_t seen_first = kernels::window_begin(p.first_token + std::size_t{1}, window_of(config));
  REDLINE_ASSERT(token_count <= end && end - token_count <= seen_first,
                 "a window table covers what its first row sees");
  std::uint32_t index = end - token_count;
  append_tiles(r.window_table, index, 1, p);
  for (const kv::piece& piece : r.window_table) {
    REDLINE_ASSERT(std::uint64_t{piece.first_slot} + piece.count <= slots_count(1), "the slots are within the storage");
    for (std::uint32_t i = 0; i < piece.count; ++i, ++index) {
      if (index >= p.first_token) slots[1].push_back(piece.first_slot + i);
    }
  }
}

void transformer::state::append_tiles(std::span<const kv::piece> pieces, std::uint32_t token_index, std::size_t storage,
                                      prepared_run& p) {
  auto& to = tiles[storage];
  p.tiles_begin[storage] = to.size();
  for (const kv::piece& piece : pieces) {
    auto known = std::find(offsets.begin(), offsets.end(), piece.offset);
    if (known == offsets.end()) known = offsets.insert(known, piece.offset);
    const auto offset_index = static_cast<std::size_t>(known - offsets.begin());
    REDLINE_ASSERT(offset_index <= std::numeric_limits<std::uint16_t>::max(), "a table has at most 65536 offsets");
    for (std::uint32_t done = 0; done < piece.count;) {
      const std::uint32_t slot = piece.first_slot + done;
      const auto room = static_cast<std::uint32_t>(kernels::tile_tokens - slot % kernels::tile_tokens);
      const std::uint32_t count = std::min(room, piece.count - done);
      to.push_back({slot, token_index, static_cast<std::uint16_t>(count), static_cast<std::uint16_t>(offset_index)});
      token_index += count;
      done += count;
    }
  }
  p.tiles_end[storage] = to.size();
}

/// Blocks have enough rows that keys and values, once read, are used for many query vectors.
void transformer::state::split_into_blocks(std::uint32_t run_index) {
  const prepared_run& p = runs[run_index];
  const auto split = [&](std::uint32_t height, std::uint32_t begin, std::vector<row_block>& into) {
    const std::uint64_t all = p.row_count - begin, count = (all + height - 1) / height;
    for (std::uint64_t i = 0; i < count; ++i) {  // nearly equal heights: 16 rows become 8 + 8, not 13 + 3
      into.push_back({run_index, static_cast<std::uint32_t>(begin + all * i / count),
                      static_cast<std::uint32_t>(begin + all * (i + 1) / count)});
    }
  };
  for (std::size_t form = 0; form < forms.size(); ++form) {
    if (forms[form] == nullptr) continue;
    const auto height =
        static_cast<std::uint32_t>(std::max<std::size_t>(1, table.attention_vectors / forms[form]->group));
    split(height, 0, blocks[form]);
    split(height, p.logits_begin, wanted_blocks[form]);
  }
}

void transformer::state::reserve_scratch() {
  std::size_t most = 0;
  for (std::size_t form = 0; form < forms.size(); ++form) {
    // Blocks of rows with logits are split differently from blocks of all rows; either can contain the largest.
    for (const auto* list : {&blocks[form], &wanted_blocks[form]}) {
      for (const row_block& b : *list) {
        most = std::max(most, kernels::attention_scratch_floats(b.row_end - b.row_begin, forms[form]->group,
                                                                forms[form]->head_dim, runs[b.run].offset_count));
      }
    }
  }
  for (float_buffer& each : scratch) each.grow(most);
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
  if (!sizes[layer].keeps_tokens) return multiply(normed.data(), {{l.query, query.data()}});
  if (config.varied && l.value.rows() == 0) {
    multiply(normed.data(), {{l.query, query.data()}, {l.key, key.data()}});
    const std::size_t width = sizes[layer].kv_width;
    return for_rows([&](std::size_t row) { std::copy_n(key.data() + row * width, width, value.data() + row * width); });
  }
  multiply(normed.data(), {{l.query, query.data(), or_null(l.query_bias)},
                           {l.key, key.data(), or_null(l.key_bias)},
                           {l.value, value.data(), or_null(l.value_bias)}});
}

kernels::kv_view transformer::state::kv_of(std::size_t layer, std::size_t kv_head) const {
  const layer_sizes& of = sizes[layer];
  std::byte* keys = kv[storage_of(layer)].data() + of.place + kv_head * of.stride;
  const std::size_t key_bytes = kernels::round_up(kernels::kv_key_bytes(how.kv, of.head_dim), 64);
  return {keys, keys + key_bytes, bytes_of_page[storage_of(layer)], how.kv};
}

/// Normalizes the heads in a row of queries or keys.
void transformer::state::normalise_parts(std::size_t layer, float* heads, std::size_t width,
                                         const std::vector<float>& weight) {
  const std::size_t part = config.head_norms() == architecture::head_norm::row ? width : sizes[layer].head_dim;
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
  const std::size_t width = sizes[layer].query_width;
  for_rows(
      [&](std::size_t row) { normalise_parts(layer, query.data() + row * width, width, w->layers[layer].query_norm); });
}

/// Values, too, if the family normalizes them.
void transformer::state::normalise_keys(std::size_t layer) {
  const layer_sizes& of = sizes[layer];
  for_rows([&](std::size_t row) {
    normalise_parts(layer, key.data() + row * of.kv_width, of.kv_width, w->layers[layer].key_norm);
    for (std::size_t at = 0; at < of.kv_width && !ones.empty(); at += of.head_dim) {
      float* const head = value.data() + row * of.kv_width + at;
      table.rms_norm(head, ones.data(), config.norm_epsilon, of.head_dim, head);
    }
  });
}

/// See model_shape::temperature_scale. The same double on every machine.
float transformer::state::query_scale(std::int64_t position) const {
  const double times = std::floor(static_cast<double>(position) / config.yarn->original_context);
  return static_cast<float>(1 + config.temperature_scale * portable_log(1 + std::max(times, 0.0)));
}

void transformer::state::scale_queries(std::size_t layer) {
  const std::size_t width = sizes[layer].query_width;
  for_rows([&](std::size_t row) {
    if (query_scales[row] == 1) return;
    float* const of_row = query.data() + row * width;
    for (std::size_t i = 0; i < width; ++i) of_row[i] *= query_scales[row];
  });
}

void transformer::state::store_keys_and_values(std::size_t layer) {
  const auto& angles = key_angles[rope_of(layer)];
  const auto& to = slots[storage_of(layer)];
  const layer_sizes& of = sizes[layer];
  for_rows([&](std::size_t row) {
    for (std::size_t head = 0; head < of.kv_heads; ++head) {
      const std::size_t at = row * of.kv_width + head * of.head_dim;
      float* k = key.data() + at;
      table.rotate(pairs_of(config), k, angles[row], of.rotated, of.head_dim, k);
      table.store_kv(kv_of(layer, head), to[row], of.head_dim, k, value.data() + at);
    }
  });
}

kernels::attention_args transformer::state::attention_of(std::size_t layer, const row_block& block,
                                                         std::size_t kv_head) const {
  const layer_sizes& of = sizes[layer];
  const prepared_run& p = runs[block.run];
  const std::vector<float>& sinks = w->layers[layer].sinks;
  const std::size_t storage = storage_of(layer);
  const std::size_t at = (p.first_row + block.row_begin) * of.query_width + kv_head * of.group * of.head_dim;
  return {
      .q = query.data() + at,
      .q_stride = of.query_width,
      .out = attended.data() + at,
      .out_stride = of.query_width,
      .rows = block.row_end - block.row_begin,
      .group = of.group,
      .head_dim = of.head_dim,
      .rotary_dim = of.rotated,
      .pairs = pairs_of(config),
      .scale = config.attention_scale > 0 ? config.attention_scale : 1.0F / std::sqrt(static_cast<float>(of.head_dim)),
      .soft_cap = config.attention_cap,
      .window = config.window_of(layer),
      .sinks = sinks.empty() ? nullptr : sinks.data() + kv_head * of.group,
      .visible = p.first_token + block.row_begin + 1,
      .tiles = tiles[storage].data() + p.tiles_begin[storage],
      .tile_count = p.tiles_end[storage] - p.tiles_begin[storage],
      .angles = query_angles[rope_of(layer)].data() + p.angles_begin + block.row_begin,
      .angles_stride = p.row_count,
      .offset_count = p.offset_count,
      .kv = kv_of(layer, kv_head)};
}

void transformer::state::attend(std::size_t layer, std::span<const row_block> some_blocks) {
  const auto run_on = [&](kernels::attention_args a, std::uint32_t worker) {
    REDLINE_ASSERT(
        scratch[worker].size() >= kernels::attention_scratch_floats(a.rows, a.group, a.head_dim, a.offset_count),
        "scratch for the largest block");
    a.scratch = scratch[worker].data();
    table.attention(a);
  };
  const std::size_t kv_heads = sizes[layer].kv_heads, items = some_blocks.size() * kv_heads;
  if (items >= team.size() || !split_contexts(layer, some_blocks)) {
    return team.parallel_for(items, [&](std::size_t item, std::uint32_t worker) {
      run_on(attention_of(layer, some_blocks[item / kv_heads], item % kv_heads), worker);
    });
  }
  team.parallel_for(kv_splits.size(), [&](std::size_t item, std::uint32_t worker) {
    kernels::attention_args a = split_calls[kv_splits[item].attention];
    a.split_begin = kv_splits[item].index;
    a.split_end = a.split_begin + 1;
    run_on(a, worker);
  });
  team.parallel_for(split_calls.size(),
                    [&](std::size_t item, std::uint32_t) { table.join_attention(split_calls[item]); });
}

/// Splits the contexts among the threads, because a few rows after long contexts would leave most of them idle. Returns
/// false if no context is long enough. The bits stay the same: sums are always made KV split by KV split.
bool transformer::state::split_contexts(std::size_t layer, std::span<const row_block> some_blocks) {
  kv_splits.clear();
  split_calls.clear();
  std::size_t floats = 0;
  for (const row_block& block : some_blocks) {
    for (std::size_t kv_head = 0; kv_head < sizes[layer].kv_heads; ++kv_head) {
      const auto& a = split_calls.emplace_back(attention_of(layer, block, kv_head));
      const std::size_t count = kernels::count_kv_splits(a.visible + a.rows - 1);
      const std::size_t first = kernels::window_begin(a.visible, a.window) / kernels::kv_split_tokens;
      for (std::size_t i = first; i < count; ++i) kv_splits.push_back({split_calls.size() - 1, i});
      floats += count * a.rows * a.group * kernels::attention_record_floats(a.head_dim);
    }
  }
  if (kv_splits.size() == split_calls.size()) return false;
  split_records.grow(floats);
  float* records = split_records.data();
  for (auto& a : split_calls) {
    a.records = records;
    records += kernels::count_kv_splits(a.visible + a.rows - 1) * a.rows * a.group *
               kernels::attention_record_floats(a.head_dim);
  }
  return true;
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

void transformer::move_tokens(std::span<const kv::token_move> moves) {
  if (moves.empty()) return;
  state& s = *state_;
  for (rope_cache& each : s.ropes) each.forget_if_large();
  std::array<std::vector<kernels::rope_angles>, 2> angles;  // indexed as `ropes`
  for (const kv::token_move& m : moves) {
    REDLINE_ASSERT(std::uint64_t{std::max(m.from_slot, m.to_slot)} + m.count <= s.slots_count(0),
                   "the slots are within the storage");
    for (std::size_t kind = 0; kind < s.ropes.size(); ++kind) {
      angles[kind].push_back(m.turn == 0 ? nullptr : s.ropes[kind].turn(m.turn));
    }
  }
  std::vector<std::pair<std::size_t, std::size_t>> heads;  // layer, KV head
  for (std::size_t layer = 0; layer < s.sizes.size(); ++layer) {
    for (std::size_t head = 0; head < s.sizes[layer].kv_heads && s.sizes[layer].keeps_tokens; ++head)
      heads.emplace_back(layer, head);
  }
  s.team.parallel_for(heads.size(), [&](std::size_t item, std::uint32_t) {
    const auto [layer, head] = heads[item];
    const layer_sizes& of = s.sizes[layer];
    const kernels::kv_view kv = s.kv_of(layer, head);
    const auto& turns = angles[s.rope_of(layer)];
    const bool is_windowed = s.storage_of(layer) == 1;
    for (std::size_t i = 0; i < moves.size(); ++i) {
      kv::token_move m = moves[i];
      if (is_windowed && (m.window_from == m.nowhere || m.window_to == m.nowhere)) continue;
      if (is_windowed) m = {.from_slot = m.window_from, .to_slot = m.window_to, .count = m.count, .turn = m.turn};
      REDLINE_ASSERT(std::uint64_t{std::max(m.from_slot, m.to_slot)} + m.count <= s.slots_count(is_windowed ? 1 : 0),
                     "the slots are within the storage");
      copy_tokens(kv, m, of.head_dim);
      if (turns[i] == nullptr) continue;
      s.table.rotate_keys(kv, m.to_slot, m.count, pairs_of(s.config), turns[i], of.rotated, of.head_dim);
    }
  });
}

void transformer::copy_states(std::span<const kv::state_copy> copies) {
  if (state_->recurrent) state_->recurrent->copy(copies);
  if (state_->mtp) state_->mtp->copy(copies);
}

std::vector<float> transformer::key_at(std::uint32_t layer, std::uint32_t slot) const {
  REDLINE_ASSERT(layer < state_->sizes.size() && !state_->config.is_recurrent(layer) &&
                     slot < state_->slots_count(state_->storage_of(layer)),
                 "the key is within the storage");
  const layer_sizes& of = state_->sizes[layer];
  std::vector<float> out;
  out.reserve(of.kv_width);
  for (std::uint32_t head = 0; head < of.kv_heads; ++head)
    append_key(state_->kv_of(layer, head), slot, of.head_dim, out);
  return out;
}

std::uint64_t page_bytes(const model_shape& config, kv_type type) { return bytes_of_layers(config, type, false); }

std::uint64_t state_bytes(const model_shape& config, std::uint32_t records_max) {
  return (config.has_states() ? recurrent_layers::slot_bytes(config, records_max) : 0) +
         (config.has_mtp() ? mtp_inputs::slot_bytes(config, records_max) : 0);
}

std::uint64_t window_page_bytes(const model_shape& config, kv_type type) { return bytes_of_layers(config, type, true); }

std::uint64_t storage_bytes(const model_shape& config, kv_type type, const kv::pool_size& size) {
  const std::uint64_t windows = window_page_bytes(config, type);
  return (std::uint64_t{size.pages} + draft_pages(config)) *
             (page_bytes(config, type) - (size.window_pages == 0 ? 0 : windows)) +
         size.window_pages * windows + size.state_slots * state_bytes(config, size.state_records) +
         size.state_copies * state_bytes(config, 0);
}

std::uint32_t window_of(const model_shape& config) {
  const bool has_windows =
      std::ranges::find(config.layer_kinds, architecture::layer_kind::window) != config.layer_kinds.end();
  return has_windows ? config.window : 0;
}

std::uint64_t buffer_bytes(const model_shape& config, std::uint32_t rows_max, std::uint32_t logits_rows_max) {
  // The buffers made by the constructors of the state and of its parts.
  const widest most = widest_of(config);
  const architecture::latent_shape latent = config.latent.value_or(architecture::latent_shape());
  const std::uint64_t of_latents = !config.latent
                                       ? 0
                                       : latent.query_rank + latent.rank + config.rotated() + config.attended_width() +
                                             std::uint64_t{config.heads} * (latent.plain_dim + config.rotated());
  const bool has_gates = config.kind != nullptr && config.kind->gates_attention;
  const bool adds_mixture = config.kind != nullptr && config.kind->adds_mixture() && config.experts != 0;
  const std::uint64_t floats =
      (3ULL + (adds_mixture ? 2 : 0)) * config.width + (has_gates ? 3 : 2) * most.queries + 2 * most.keys + of_latents;
  std::uint64_t bytes = floats * sizeof(float) + feed_forward::row_bytes(config);
  if (config.has_states()) bytes += recurrent_layers::row_bytes(config);
  if (config.has_mtp()) bytes += mtp_inputs::row_bytes(config);
  if (config.varied && config.varied->layer_input != 0) bytes += layer_inputs::row_bytes(config);
  const std::uint64_t logits = std::uint64_t{logits_rows_max == 0 ? rows_max : logits_rows_max} * config.vocabulary;
  return rows_max * bytes + logits * sizeof(float);
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
