#include "runtime/model/attention_layers.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "runtime/base/portable_math.hpp"
#include "runtime/model/kv_moves.hpp"

namespace redline::model {
namespace {

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

attention_layers::attention_layers(const weights& w, row_products& products, kv_type type, std::uint32_t pages,
                                   std::uint32_t window_pages)
    : w_(w),
      config_(w.config),
      products_(products),
      table_(products.table()),
      type_(type),
      pages_(pages),
      window_pages_(window_pages),
      ropes_(make_ropes(config_, w.rope_factors)),
      bytes_of_page_({page_bytes(config_, type) - (window_pages == 0 ? 0 : window_page_bytes(config_, type)),
                      window_page_bytes(config_, type)}),
      kv_({kernels::memory_block((std::size_t{pages} + draft_pages(config_)) * bytes_of_page_[0]),
           kernels::memory_block(window_pages * bytes_of_page_[1])}),
      sizes_(layout_of(config_, type, window_pages != 0)),
      scratch_(products.team().size()) {
  for (std::size_t layer = 0; layer < config_.layers; ++layer) {
    if (!config_.is_recurrent(layer)) forms_[form_of(layer)] = &sizes_[layer];
  }
}

void attention_layers::move(std::span<const kv::token_move> moves) {
  if (moves.empty()) return;
  for (rope_cache& each : ropes_) each.forget_if_large();
  std::array<std::vector<kernels::rope_angles>, 2> angles;  // indexed as `ropes_`
  for (const kv::token_move& m : moves) {
    REDLINE_ASSERT(std::uint64_t{std::max(m.from_slot, m.to_slot)} + m.count <= slots_count(0),
                   "the slots are within the storage");
    for (std::size_t kind = 0; kind < ropes_.size(); ++kind) {
      angles[kind].push_back(m.turn == 0 ? nullptr : ropes_[kind].turn(m.turn));
    }
  }
  std::vector<std::pair<std::size_t, std::size_t>> heads;  // layer, KV head
  for (std::size_t layer = 0; layer < sizes_.size(); ++layer) {
    for (std::size_t head = 0; head < sizes_[layer].kv_heads && sizes_[layer].keeps_tokens; ++head)
      heads.emplace_back(layer, head);
  }
  products_.team().parallel_for(heads.size(), [&](std::size_t item, std::uint32_t) {
    const auto [layer, head] = heads[item];
    const layer_sizes& of = sizes_[layer];
    const kernels::kv_view kv = kv_of(layer, head);
    const auto& turns = angles[rope_of(layer)];
    const bool is_windowed = storage_of(layer) == 1;
    for (std::size_t i = 0; i < moves.size(); ++i) {
      kv::token_move m = moves[i];
      if (is_windowed && (m.window_from == m.nowhere || m.window_to == m.nowhere)) continue;
      if (is_windowed) m = {.from_slot = m.window_from, .to_slot = m.window_to, .count = m.count, .turn = m.turn};
      REDLINE_ASSERT(std::uint64_t{std::max(m.from_slot, m.to_slot)} + m.count <= slots_count(is_windowed ? 1 : 0),
                     "the slots are within the storage");
      copy_tokens(kv, m, of.head_dim);
      if (turns[i] == nullptr) continue;
      table_.rotate_keys(kv, m.to_slot, m.count, pairs_of(config_), turns[i], of.rotated, of.head_dim);
    }
  });
}

std::vector<float> attention_layers::key_at(std::size_t layer, std::uint32_t slot) const {
  REDLINE_ASSERT(layer < sizes_.size() && !config_.is_recurrent(layer) && slot < slots_count(storage_of(layer)),
                 "the key is within the storage");
  const layer_sizes& of = sizes_[layer];
  std::vector<float> out;
  out.reserve(of.kv_width);
  for (std::uint32_t head = 0; head < of.kv_heads; ++head) append_key(kv_of(layer, head), slot, of.head_dim, out);
  return out;
}

void attention_layers::begin(std::span<const run> batch) {
  runs_.clear();
  for (auto& each : slots_) each.clear();
  for (auto& angles : key_angles_) angles.clear();
  for (auto& angles : query_angles_) angles.clear();
  for (auto& each : tiles_) each.clear();
  query_scales_.clear();
  for (auto* both : {&blocks_, &wanted_blocks_}) {
    for (auto& each : *both) each.clear();
  }
  for (rope_cache& each : ropes_) each.forget_if_large();
  for (const run& r : batch) {
    if (!r.tokens.empty()) prepare(r);
  }
  reserve_scratch();
}

void attention_layers::prepare(const run& r) {
  prepared_run p;
  p.first_row = static_cast<std::uint32_t>(slots_[0].size());
  p.row_count = static_cast<std::uint32_t>(r.tokens.size());
  std::uint32_t token_count = 0;
  for (const kv::piece& piece : r.table) token_count += piece.count;
  REDLINE_ASSERT(token_count >= p.row_count, "a run's table ends with the run's own slots");
  p.first_token = token_count - p.row_count;

  append_slots(r);
  offsets_.clear();
  append_tiles(r.table, 0, 0, p);
  if (window_pages_ != 0) append_windows(r, p);
  p.angles_begin = query_angles_[0].size();
  p.offset_count = static_cast<std::uint32_t>(offsets_.size());
  for (const std::int32_t offset : offsets_) {
    for (std::uint32_t i = 0; i < p.row_count; ++i) {
      const std::int64_t at = std::int64_t{r.first_position} + i - offset;
      for (std::size_t kind = 0; kind < ropes_.size(); ++kind) query_angles_[kind].push_back(ropes_[kind].at(at));
    }
  }
  if (config_.temperature_scale != 0) {
    for (std::uint32_t i = 0; i < p.row_count; ++i)
      query_scales_.push_back(query_scale(std::int64_t{r.first_position} + i));
  }
  runs_.push_back(p);
  split_into_blocks(static_cast<std::uint32_t>(runs_.size() - 1), std::min(r.logits_begin, p.row_count));
}

/// Finds the slots and rotations of the run's own keys. A key at position p in a piece with an offset is rotated for p
/// - offset, so that all keys of a piece agree.
void attention_layers::append_slots(const run& r) {
  const std::size_t first = slots_[0].size();
  slots_[0].resize(first + r.tokens.size());
  for (std::size_t kind = 0; kind < ropes_.size(); ++kind) key_angles_[kind].resize(slots_[0].size());
  std::size_t left = r.tokens.size();
  for (std::size_t i = r.table.size(); left > 0; --i) {
    const kv::piece& piece = r.table[i - 1];
    for (std::uint32_t j = piece.count; j > 0 && left > 0; --j) {
      --left;
      slots_[0][first + left] = piece.first_slot + j - 1;
      REDLINE_ASSERT(slots_[0][first + left] < slots_count(0), "the slot is within the storage");
      const std::int64_t at = std::int64_t{r.first_position} + static_cast<std::int64_t>(left) - piece.offset;
      for (std::size_t kind = 0; kind < ropes_.size(); ++kind) key_angles_[kind][first + left] = ropes_[kind].at(at);
    }
  }
}

/// Finds the slots of the run's own keys in the storage of layers with a window, and the tiles there.
void attention_layers::append_windows(const run& r, prepared_run& p) {
  std::uint32_t token_count = 0;
  for (const kv::piece& piece : r.window_table) token_count += piece.count;
  const std::uint32_t end = p.first_token + p.row_count;
  const std::size_t seen_first = kernels::window_begin(p.first_token + std::size_t{1}, window_of(config_));
  REDLINE_ASSERT(token_count <= end && end - token_count <= seen_first,
                 "a window table covers what its first row sees");
  std::uint32_t index = end - token_count;
  append_tiles(r.window_table, index, 1, p);
  for (const kv::piece& piece : r.window_table) {
    REDLINE_ASSERT(std::uint64_t{piece.first_slot} + piece.count <= slots_count(1), "the slots are within the storage");
    for (std::uint32_t i = 0; i < piece.count; ++i, ++index) {
      if (index >= p.first_token) slots_[1].push_back(piece.first_slot + i);
    }
  }
}

void attention_layers::append_tiles(std::span<const kv::piece> pieces, std::uint32_t token_index, std::size_t storage,
                                    prepared_run& p) {
  auto& to = tiles_[storage];
  p.tiles_begin[storage] = to.size();
  for (const kv::piece& piece : pieces) {
    auto known = std::find(offsets_.begin(), offsets_.end(), piece.offset);
    if (known == offsets_.end()) known = offsets_.insert(known, piece.offset);
    const auto offset_index = static_cast<std::size_t>(known - offsets_.begin());
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
void attention_layers::split_into_blocks(std::uint32_t run_index, std::uint32_t logits_begin) {
  const std::uint32_t row_count = runs_[run_index].row_count;
  const auto split = [&](std::uint32_t height, std::uint32_t begin, std::vector<row_block>& into) {
    const std::uint64_t all = row_count - begin, count = (all + height - 1) / height;
    for (std::uint64_t i = 0; i < count; ++i) {  // nearly equal heights: 16 rows become 8 + 8, not 13 + 3
      into.push_back({run_index, static_cast<std::uint32_t>(begin + all * i / count),
                      static_cast<std::uint32_t>(begin + all * (i + 1) / count)});
    }
  };
  for (std::size_t form = 0; form < forms_.size(); ++form) {
    if (forms_[form] == nullptr) continue;
    const auto height =
        static_cast<std::uint32_t>(std::max<std::size_t>(1, table_.attention_vectors / forms_[form]->group));
    split(height, 0, blocks_[form]);
    split(height, logits_begin, wanted_blocks_[form]);
  }
}

void attention_layers::reserve_scratch() {
  std::size_t most = 0;
  for (std::size_t form = 0; form < forms_.size(); ++form) {
    // Blocks of rows with logits are split differently from blocks of all rows; either can contain the largest.
    for (const auto* list : {&blocks_[form], &wanted_blocks_[form]}) {
      for (const row_block& b : *list) {
        most = std::max(most, kernels::attention_scratch_floats(b.row_end - b.row_begin, forms_[form]->group,
                                                                forms_[form]->head_dim, runs_[b.run].offset_count));
      }
    }
  }
  for (float_buffer& each : scratch_) each.grow(most);
}

/// See model_shape::temperature_scale. The same double on every machine.
float attention_layers::query_scale(std::int64_t position) const {
  const double times = std::floor(static_cast<double>(position) / config_.yarn->original_context);
  return static_cast<float>(1 + config_.temperature_scale * portable_log(1 + std::max(times, 0.0)));
}

void attention_layers::scale_queries(std::size_t layer, float* query) {
  const std::size_t width = sizes_[layer].query_width;
  products_.for_rows(query_scales_.size(), [&](std::size_t row) {
    if (query_scales_[row] == 1) return;
    float* const of_row = query + row * width;
    for (std::size_t i = 0; i < width; ++i) of_row[i] *= query_scales_[row];
  });
}

void attention_layers::store(std::size_t layer, float* key, const float* value) {
  const auto& angles = key_angles_[rope_of(layer)];
  const auto& to = slots_[storage_of(layer)];
  const layer_sizes& of = sizes_[layer];
  products_.for_rows(to.size(), [&](std::size_t row) {
    for (std::size_t head = 0; head < of.kv_heads; ++head) {
      const std::size_t at = row * of.kv_width + head * of.head_dim;
      table_.rotate(pairs_of(config_), key + at, angles[row], of.rotated, of.head_dim, key + at);
      table_.store_kv(kv_of(layer, head), to[row], of.head_dim, key + at, value + at);
    }
  });
}

kernels::kv_view attention_layers::kv_of(std::size_t layer, std::size_t kv_head) const {
  const layer_sizes& of = sizes_[layer];
  std::byte* keys = kv_[storage_of(layer)].data() + of.place + kv_head * of.stride;
  const std::size_t key_bytes = kernels::round_up(kernels::kv_key_bytes(type_, of.head_dim), 64);
  return {keys, keys + key_bytes, bytes_of_page_[storage_of(layer)], type_};
}

kernels::attention_args attention_layers::attention_of(std::size_t layer, const row_block& block, std::size_t kv_head,
                                                       const float* query, float* attended) const {
  const layer_sizes& of = sizes_[layer];
  const prepared_run& p = runs_[block.run];
  const std::vector<float>& sinks = w_.layers[layer].sinks;
  const std::size_t storage = storage_of(layer);
  const std::size_t at = (p.first_row + block.row_begin) * of.query_width + kv_head * of.group * of.head_dim;
  return {.q = query + at,
          .q_stride = of.query_width,
          .out = attended + at,
          .out_stride = of.query_width,
          .rows = block.row_end - block.row_begin,
          .group = of.group,
          .head_dim = of.head_dim,
          .rotary_dim = of.rotated,
          .pairs = pairs_of(config_),
          .scale =
              config_.attention_scale > 0 ? config_.attention_scale : 1.0F / std::sqrt(static_cast<float>(of.head_dim)),
          .soft_cap = config_.attention_cap,
          .window = config_.window_of(layer),
          .sinks = sinks.empty() ? nullptr : sinks.data() + kv_head * of.group,
          .visible = p.first_token + block.row_begin + 1,
          .tiles = tiles_[storage].data() + p.tiles_begin[storage],
          .tile_count = p.tiles_end[storage] - p.tiles_begin[storage],
          .angles = query_angles_[rope_of(layer)].data() + p.angles_begin + block.row_begin,
          .angles_stride = p.row_count,
          .offset_count = p.offset_count,
          .kv = kv_of(layer, kv_head)};
}

void attention_layers::attend(std::size_t layer, bool only_wanted, const float* query, float* attended) {
  const std::span<const row_block> some_blocks = (only_wanted ? wanted_blocks_ : blocks_)[form_of(layer)];
  kernels::worker_team& team = products_.team();
  const auto run_on = [&](kernels::attention_args a, std::uint32_t worker) {
    REDLINE_ASSERT(
        scratch_[worker].size() >= kernels::attention_scratch_floats(a.rows, a.group, a.head_dim, a.offset_count),
        "scratch for the largest block");
    a.scratch = scratch_[worker].data();
    table_.attention(a);
  };
  const std::size_t kv_heads = sizes_[layer].kv_heads, items = some_blocks.size() * kv_heads;
  if (items >= team.size() || !split_contexts(layer, some_blocks, query, attended)) {
    return team.parallel_for(items, [&](std::size_t item, std::uint32_t worker) {
      run_on(attention_of(layer, some_blocks[item / kv_heads], item % kv_heads, query, attended), worker);
    });
  }
  team.parallel_for(kv_splits_.size(), [&](std::size_t item, std::uint32_t worker) {
    kernels::attention_args a = split_calls_[kv_splits_[item].attention];
    a.split_begin = kv_splits_[item].index;
    a.split_end = a.split_begin + 1;
    run_on(a, worker);
  });
  team.parallel_for(split_calls_.size(),
                    [&](std::size_t item, std::uint32_t) { table_.join_attention(split_calls_[item]); });
}

/// Splits the contexts among the threads, because a few rows after long contexts would leave most of them idle. Returns
/// false if no context is long enough. The bits stay the same: sums are always made KV split by KV split.
bool attention_layers::split_contexts(std::size_t layer, std::span<const row_block> some_blocks, const float* query,
                                      float* attended) {
  kv_splits_.clear();
  split_calls_.clear();
  std::size_t floats = 0;
  for (const row_block& block : some_blocks) {
    for (std::size_t kv_head = 0; kv_head < sizes_[layer].kv_heads; ++kv_head) {
      const auto& a = split_calls_.emplace_back(attention_of(layer, block, kv_head, query, attended));
      const std::size_t count = kernels::count_kv_splits(a.visible + a.rows - 1);
      const std::size_t first = kernels::window_begin(a.visible, a.window) / kernels::kv_split_tokens;
      for (std::size_t i = first; i < count; ++i) kv_splits_.push_back({split_calls_.size() - 1, i});
      floats += count * a.rows * a.group * kernels::attention_record_floats(a.head_dim);
    }
  }
  if (kv_splits_.size() == split_calls_.size()) return false;
  split_records_.grow(floats);
  float* records = split_records_.data();
  for (auto& a : split_calls_) {
    a.records = records;
    records += kernels::count_kv_splits(a.visible + a.rows - 1) * a.rows * a.group *
               kernels::attention_record_floats(a.head_dim);
  }
  return true;
}

}  // namespace redline::model
