#include "runtime/model/transformer.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>
#include <new>
#include <optional>
#include <vector>

#include "kernels/machine/memory.hpp"
#include "runtime/base/portable_math.hpp"
#include "runtime/model/feed_forward.hpp"
#include "runtime/model/kv_moves.hpp"
#include "runtime/model/latent_projections.hpp"
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
  windowed.rope_position_scale = 1;
  windowed.yarn.reset();
  windowed.rope_magnitude = 1;
  ropes.emplace_back(windowed, std::span<const float>());
  return ropes;
}

/// The distance from one head's keys and values in a page to the next one's. It is not a multiple of 4 KiB, so that
/// page sizes are not either. Otherwise a head's keys and values would map to a few sets of a cache, and the prefetched
/// block would evict the current one.
std::uint64_t head_stride(const model_shape& config, kv_type type) {
  const std::uint64_t bytes = kernels::kv_head_bytes(type, config.head_dim);
  return bytes % 4096 == 0 ? bytes + 64 : bytes;
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

  // The steps inside a layer.
  void multiply(const float* rows_of_x, std::initializer_list<row_products::product> those);
  void make_queries_keys_values(const layer_weights& l);
  void normalise_row(const norm_weights& norm, const float* from, float* to);
  void normalise(const norm_weights& norm);
  void add_row(std::size_t row, const norm_weights& post_norm);
  void add(const norm_weights& post_norm);
  void add_and_normalise(const norm_weights& post_norm, const norm_weights& next);
  void normalise_heads(const layer_weights& l);
  [[nodiscard]] float query_scale(std::int64_t position) const;
  void scale_queries();
  void store_keys_and_values(std::size_t layer);
  [[nodiscard]] kernels::attention_args attention_of(std::size_t layer, const row_block& block,
                                                     std::size_t kv_head) const;
  void attend(std::size_t layer, std::span<const row_block> blocks);
  bool split_contexts(std::size_t layer, std::span<const row_block> blocks);
  void keep_wanted_rows(float* read, std::size_t read_width);
  const float* picked_rows(std::span<const std::uint32_t> which);
  void make_logits(const float* from, std::size_t count);

  template<class Body>
  void for_rows(Body body);
  template<class Body>
  void timed(double& seconds, Body body);
  [[nodiscard]] kernels::kv_view kv_of(std::size_t layer, std::size_t kv_head) const;
  /// Index in `kv`: 1 if layers with a window have separate storage and this is one of them.
  [[nodiscard]] std::size_t storage_of(std::size_t layer) const {
    return how.window_pages_count != 0 && config.window_of(layer) != 0 ? 1 : 0;
  }
  [[nodiscard]] std::uint64_t slots_count(std::size_t storage) const {
    return std::uint64_t{storage == 0 ? how.pages_count : how.window_pages_count} * kv::page_tokens;
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
  std::vector<rope_cache> ropes;
  std::array<std::uint64_t, 2> bytes_of_page;  // by storage
  std::array<kernels::memory_block, 2> kv;     // page by page, each [layers of the storage][kv head] of kv_head_bytes
  std::vector<std::size_t> place_in_page;      // by layer: the number of earlier ones in its storage, or with a state
  times spent;

  // Activations of the current rows; the widths are fixed, see the constructor.
  std::size_t attention_width;
  std::size_t kv_width;
  float_buffer x, normed, query, key, value, attended, delta;
  float_buffer query_gate;  // [rows, attention_width], if the family gates attention
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
  std::vector<row_block> blocks, wanted_blocks;      // wanted_blocks has only rows that want logits
  struct kv_split {
    std::size_t attention;  // index in split_calls
    std::size_t index;
  };
  std::vector<kernels::attention_args> split_calls;  // calls for one layer, if contexts are split
  std::vector<kv_split> kv_splits;
  float_buffer split_records;
  std::vector<std::uint32_t> wanted_rows;
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
      kv({kernels::memory_block(how.pages_count * bytes_of_page[0]),
          kernels::memory_block(how.window_pages_count * bytes_of_page[1])}),
      attention_width(std::size_t{config.heads} * config.head_dim),
      kv_width(std::size_t{config.kv_heads} * config.head_dim),
      x(std::size_t{how.rows_max} * config.width),
      normed(std::size_t{how.rows_max} * config.width),
      query(how.rows_max * attention_width),
      key(how.rows_max * kv_width),
      value(how.rows_max * kv_width),
      attended(how.rows_max * attention_width),
      delta(std::size_t{how.rows_max} * config.width),
      logits(std::size_t{how.logits_rows_max} * config.vocabulary),
      scratch(team.size()) {
  if (config.latent) latents.emplace(config, products, how.rows_max);
  if (config.has_states())
    recurrent.emplace(config, products, how.rows_max, how.state_slots, how.state_copies, how.records_max);
  if (config.kind->gates_attention) query_gate = float_buffer(how.rows_max * attention_width);
  std::array<std::size_t, 3> layers_count = {};
  for (std::size_t layer = 0; layer < config.layers; ++layer)
    place_in_page.push_back(layers_count[config.is_recurrent(layer) ? 2 : storage_of(layer)]++);
}

std::span<const float> transformer::forward(std::span<const run> batch) {
  state& s = *state_;
  if (forward_body(batch) == 0) return {};
  s.timed(s.spent.head, [&] { s.make_logits(s.normed.data(), s.rows); });
  return {s.logits.data(), s.rows * s.config.vocabulary};
}

std::span<const float> transformer::logits_of(std::span<const std::uint32_t> rows) {
  state& s = *state_;
  s.timed(s.spent.head, [&] { s.make_logits(s.picked_rows(rows), rows.size()); });
  return {s.logits.data(), rows.size() * s.config.vocabulary};
}

std::span<const kernels::row_best> transformer::best_of(std::span<const std::uint32_t> rows) {
  state& s = *state_;
  s.best.assign(rows.size(), {});
  s.timed(s.spent.head, [&] {
    if (s.config.logit_multiplier() == 1 && s.config.logit_cap == 0) {
      return s.products.find_best(s.picked_rows(rows), rows.size(), s.w->output_head(), s.best);
    }
    s.make_logits(s.picked_rows(rows), rows.size());
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
  s.timed(s.spent.norms, [&] { s.normalise(w.layers.front().attention_norm); });
  for (std::size_t layer = 0; layer < w.layers.size(); ++layer) {
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
  return s.rows;
}

/// The first half of a layer with attention: leaves its output in delta. In the last layer, rows that want no logits
/// are dropped.
void transformer::state::remember_and_attend(std::size_t layer) {
  const layer_weights& l = w->layers[layer];
  const bool last = layer + 1 == w->layers.size();
  timed(spent.query_key_value, [&] { make_queries_keys_values(l); });
  if (config.head_norms() != architecture::head_norm::none) timed(spent.norms, [&] { normalise_heads(l); });
  if (!query_scales.empty()) scale_queries();
  timed(spent.store, [&] { store_keys_and_values(layer); });
  if (last && wanted_rows.empty()) {
    rows = 0;
    return;
  }
  timed(spent.attention, [&] { attend(layer, last ? wanted_blocks : blocks); });
  if (config.kind->gates_attention) {
    for_rows([&](std::size_t row) {
      const std::size_t at = row * attention_width;
      table.sigmoid_multiply(query_gate.data() + at, attended.data() + at, attention_width);
    });
  }
  if (last) keep_wanted_rows(attended.data(), attention_width);
  timed(spent.output, [&] {
    const float* seen = latents ? latents->write(l, attended.data(), rows) : attended.data();
    multiply(seen, {{l.output, delta.data(), or_null(l.output_bias)}});
  });
}

/// The first half of a recurrent layer, likewise.
void transformer::state::follow_state(std::size_t layer) {
  const layer_weights& l = w->layers[layer];
  const bool last = layer + 1 == w->layers.size();
  float* mixed = nullptr;
  timed(spent.recurrence, [&] { mixed = recurrent->compute(place_in_page[layer], l, normed.data(), rows); });
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
  const bool last = layer + 1 == w->layers.size();
  timed(spent.norms, [&] {
    if (l.reads_one_norm()) return add(l.attention_post_norm);
    add_and_normalise(l.attention_post_norm, l.feed_forward_norm);
  });
  timed(spent.feed_forward, [&] { hidden.compute(l, normed.data(), rows, delta.data()); });
  timed(spent.norms, [&] {
    add_and_normalise(l.feed_forward_post_norm, last ? w->output_norm : w->layers[layer + 1].attention_norm);
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
void transformer::state::make_logits(const float* from, std::size_t count) {
  products.multiply(from, count, {{w->output_head(), logits.data()}});
  if (config.logit_multiplier() == 1 && config.logit_cap == 0) return;
  products.for_rows(count, [&](std::size_t row) {
    const std::span of_row(logits.data() + row * config.vocabulary, config.vocabulary);
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
  blocks.clear();
  wanted_blocks.clear();
  wanted_rows.clear();
  for (rope_cache& each : ropes) each.forget_if_large();
  for (const run& r : batch) {
    if (!r.tokens.empty()) prepare_run(r);
  }
  if (recurrent) recurrent->begin(batch);
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
  const std::uint32_t group = config.heads / config.kv_heads;
  const auto height = static_cast<std::uint32_t>(std::max<std::size_t>(1, table.attention_vectors / group));
  const auto split = [&](std::uint32_t begin, std::vector<row_block>& into) {
    const std::uint64_t all = p.row_count - begin, count = (all + height - 1) / height;
    for (std::uint64_t i = 0; i < count; ++i) {  // nearly equal heights: 16 rows become 8 + 8, not 13 + 3
      into.push_back({run_index, static_cast<std::uint32_t>(begin + all * i / count),
                      static_cast<std::uint32_t>(begin + all * (i + 1) / count)});
    }
  };
  split(0, blocks);
  split(p.logits_begin, wanted_blocks);
}

void transformer::state::reserve_scratch() {
  const std::size_t group = config.heads / config.kv_heads;
  std::size_t most = 0;
  // Blocks of rows with logits are split differently from blocks of all rows; either can contain the largest.
  for (const auto* list : {&blocks, &wanted_blocks}) {
    for (const row_block& b : *list) {
      const prepared_run& p = runs[b.run];
      most = std::max(
          most, kernels::attention_scratch_floats(b.row_end - b.row_begin, group, config.head_dim, p.offset_count));
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

void transformer::state::make_queries_keys_values(const layer_weights& l) {
  if (latents) return latents->read(l, normed.data(), rows, query.data(), key.data(), value.data());
  if (config.kind->gates_attention) {
    return multiply(
        normed.data(),
        {{l.query, query.data()}, {l.query_gate, query_gate.data()}, {l.key, key.data()}, {l.value, value.data()}});
  }
  multiply(normed.data(), {{l.query, query.data(), or_null(l.query_bias)},
                           {l.key, key.data(), or_null(l.key_bias)},
                           {l.value, value.data(), or_null(l.value_bias)}});
}

kernels::kv_view transformer::state::kv_of(std::size_t layer, std::size_t kv_head) const {
  const std::size_t at = place_in_page[layer] * config.kv_heads + kv_head;
  std::byte* keys = kv[storage_of(layer)].data() + at * head_stride(config, how.kv);
  const std::size_t key_bytes = kernels::round_up(kernels::kv_key_bytes(how.kv, config.head_dim), 64);
  return {keys, keys + key_bytes, bytes_of_page[storage_of(layer)], how.kv};
}

void transformer::state::normalise_heads(const layer_weights& l) {
  const auto normalise_parts = [&](float* heads, std::size_t width, const std::vector<float>& weight) {
    const std::size_t part = config.head_norms() == architecture::head_norm::row ? width : config.head_dim;
    for (std::size_t at = 0; at < width; at += part) {
      const float* scale = weight.data() + at % weight.size();
      if (config.kind->norm == architecture::norm_kind::rms) {
        table.rms_norm(heads + at, scale, config.norm_epsilon, part, heads + at);
      } else {
        table.layer_norm(heads + at, scale, l.head_shift.data(), config.norm_epsilon, part, heads + at);
      }
    }
  };
  for_rows([&](std::size_t row) {
    normalise_parts(query.data() + row * attention_width, attention_width, l.query_norm);
    normalise_parts(key.data() + row * kv_width, kv_width, l.key_norm);
  });
}

/// See model_shape::temperature_scale. The same double on every machine.
float transformer::state::query_scale(std::int64_t position) const {
  const double times = std::floor(static_cast<double>(position) / config.yarn->original_context);
  return static_cast<float>(1 + config.temperature_scale * portable_log(1 + std::max(times, 0.0)));
}

void transformer::state::scale_queries() {
  for_rows([&](std::size_t row) {
    if (query_scales[row] == 1) return;
    float* const of_row = query.data() + row * attention_width;
    for (std::size_t i = 0; i < attention_width; ++i) of_row[i] *= query_scales[row];
  });
}

void transformer::state::store_keys_and_values(std::size_t layer) {
  const auto& angles = key_angles[rope_of(layer)];
  const auto& to = slots[storage_of(layer)];
  for_rows([&](std::size_t row) {
    for (std::size_t head = 0; head < config.kv_heads; ++head) {
      float* k = key.data() + row * kv_width + head * config.head_dim;
      table.rotate(pairs_of(config), k, angles[row], config.rotated(), config.head_dim, k);
      table.store_kv(kv_of(layer, head), to[row], config.head_dim, k,
                     value.data() + row * kv_width + head * config.head_dim);
    }
  });
}

kernels::attention_args transformer::state::attention_of(std::size_t layer, const row_block& block,
                                                         std::size_t kv_head) const {
  const std::size_t group = config.heads / config.kv_heads;
  const prepared_run& p = runs[block.run];
  const std::vector<float>& sinks = w->layers[layer].sinks;
  const std::size_t storage = storage_of(layer);
  const std::size_t at = (p.first_row + block.row_begin) * attention_width + kv_head * group * config.head_dim;
  return {.q = query.data() + at,
          .q_stride = attention_width,
          .out = attended.data() + at,
          .out_stride = attention_width,
          .rows = block.row_end - block.row_begin,
          .group = group,
          .head_dim = config.head_dim,
          .rotary_dim = config.rotated(),
          .pairs = pairs_of(config),
          .scale = config.attention_scale > 0 ? config.attention_scale
                                              : 1.0F / std::sqrt(static_cast<float>(config.head_dim)),
          .soft_cap = config.attention_cap,
          .window = config.window_of(layer),
          .sinks = sinks.empty() ? nullptr : sinks.data() + kv_head * group,
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
  const std::size_t items = some_blocks.size() * config.kv_heads;
  if (items >= team.size() || !split_contexts(layer, some_blocks)) {
    return team.parallel_for(items, [&](std::size_t item, std::uint32_t worker) {
      run_on(attention_of(layer, some_blocks[item / config.kv_heads], item % config.kv_heads), worker);
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
    for (std::size_t kv_head = 0; kv_head < config.kv_heads; ++kv_head) {
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
    if (!w->layers.back().reads_one_norm()) continue;  // otherwise the feed-forward part reads attention's input
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
  const std::size_t kv_heads = s.config.kv_heads;
  s.team.parallel_for(s.config.layers * kv_heads, [&](std::size_t item, std::uint32_t) {
    if (s.config.is_recurrent(item / kv_heads)) return;
    const kernels::kv_view kv = s.kv_of(item / kv_heads, item % kv_heads);
    const auto& turns = angles[s.rope_of(item / kv_heads)];
    const bool is_windowed = s.storage_of(item / kv_heads) == 1;
    for (std::size_t i = 0; i < moves.size(); ++i) {
      kv::token_move m = moves[i];
      if (is_windowed && (m.window_from == m.nowhere || m.window_to == m.nowhere)) continue;
      if (is_windowed) m = {.from_slot = m.window_from, .to_slot = m.window_to, .count = m.count, .turn = m.turn};
      REDLINE_ASSERT(std::uint64_t{std::max(m.from_slot, m.to_slot)} + m.count <= s.slots_count(is_windowed ? 1 : 0),
                     "the slots are within the storage");
      copy_tokens(kv, m, s.config.head_dim);
      if (turns[i] == nullptr) continue;
      s.table.rotate_keys(kv, m.to_slot, m.count, pairs_of(s.config), turns[i], s.config.rotated(), s.config.head_dim);
    }
  });
}

void transformer::copy_states(std::span<const kv::state_copy> copies) {
  if (state_->recurrent) state_->recurrent->copy(copies);
}

std::vector<float> transformer::key_at(std::uint32_t layer, std::uint32_t slot) const {
  const model_shape& config = state_->config;
  REDLINE_ASSERT(
      layer < config.layers && !config.is_recurrent(layer) && slot < state_->slots_count(state_->storage_of(layer)),
      "the key is within the storage");
  std::vector<float> out;
  out.reserve(std::size_t{config.kv_heads} * config.head_dim);
  for (std::uint32_t head = 0; head < config.kv_heads; ++head)
    append_key(state_->kv_of(layer, head), slot, config.head_dim, out);
  return out;
}

std::uint64_t page_bytes(const model_shape& config, kv_type type) {
  return std::uint64_t{config.attention_layers()} * config.kv_heads * head_stride(config, type);
}

std::uint64_t state_bytes(const model_shape& config, std::uint32_t records_max) {
  return config.has_states() ? recurrent_layers::slot_bytes(config, records_max) : 0;
}

std::uint64_t window_page_bytes(const model_shape& config, kv_type type) {
  const auto count = std::ranges::count(config.layer_kinds, architecture::layer_kind::window);
  return static_cast<std::uint64_t>(count) * config.kv_heads * head_stride(config, type);
}

std::uint64_t storage_bytes(const model_shape& config, kv_type type, const kv::pool_size& size) {
  const std::uint64_t windows = window_page_bytes(config, type);
  return size.pages * (page_bytes(config, type) - (size.window_pages == 0 ? 0 : windows)) +
         size.window_pages * windows + size.state_slots * state_bytes(config, size.state_records) +
         size.state_copies * state_bytes(config, 0);
}

std::uint32_t window_of(const model_shape& config) {
  const bool has_windows =
      std::ranges::find(config.layer_kinds, architecture::layer_kind::window) != config.layer_kinds.end();
  return has_windows ? config.window : 0;
}

std::uint64_t buffer_bytes(const model_shape& config, std::uint32_t rows_max, std::uint32_t logits_rows_max) {
  // The buffers made by the constructors of the state, of feed_forward and of latent_projections.
  const std::uint64_t attention = std::uint64_t{config.heads} * config.head_dim;
  const std::uint64_t keys = std::uint64_t{config.kv_heads} * config.head_dim;
  const std::uint64_t mixed =
      std::uint64_t{config.experts_used} * config.expert_feed_forward + config.shared_feed_forward;
  const std::uint64_t hidden = config.is_mixture(0) ? mixed : std::max<std::uint64_t>(config.feed_forward, mixed);
  const std::uint64_t of_experts = 2ULL * config.experts_used * config.width + config.experts;
  const architecture::latent_shape latent = config.latent.value_or(architecture::latent_shape());
  const std::uint64_t of_latents = !config.latent
                                       ? 0
                                       : latent.query_rank + latent.rank + config.rotated() + config.attended_width() +
                                             std::uint64_t{config.heads} * (latent.plain_dim + config.rotated());
  const std::uint64_t per_row = 3ULL * config.width + 2 * attention + 2 * keys + 2 * hidden + of_experts + of_latents;
  const std::uint64_t logits = std::uint64_t{logits_rows_max == 0 ? rows_max : logits_rows_max} * config.vocabulary;
  const bool has_gates = config.kind != nullptr && config.kind->gates_attention;
  const std::uint64_t gates = has_gates ? attention * sizeof(float) : 0;
  const std::uint64_t of_states = gates + (config.has_states() ? recurrent_layers::row_bytes(config) : 0);
  return (rows_max * per_row + logits) * sizeof(float) + rows_max * of_states;
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
