#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/kernel_table.hpp"
#include "kernels/machine/memory.hpp"
#include "runtime/kv/page_table.hpp"
#include "runtime/model/batch.hpp"
#include "runtime/model/float_buffer.hpp"
#include "runtime/model/memory_layout.hpp"
#include "runtime/model/rope_cache.hpp"
#include "runtime/model/row_products.hpp"
#include "runtime/model/weights.hpp"

namespace redline::model {

/// Layers that keep the keys and values of all tokens, or of those in a window, and their storage.
///
/// A pass begins with tables of what its rows see: tiles of slots, and angles by which keys and queries are rotated.
/// Rows are attended in blocks, and long contexts are split among the threads. The bits of a row depend only on the
/// sequence's tokens: not on the batch, the blocks, the pieces of the page table, or the number of threads.
class attention_layers {
 public:
  /// Allocates the storage: pages for all layers or, if there are window pages, for those without a window; and those
  /// of MTP drafts. The weights and products must outlive it. Throws std::bad_alloc.
  attention_layers(const weights& w, row_products& products, kv_type type, std::uint32_t pages,
                   std::uint32_t window_pages);

  [[nodiscard]] const layer_sizes& sizes_of(std::size_t layer) const { return sizes_[layer]; }
  /// The slots for MTP drafts, which follow those of sequences.
  [[nodiscard]] std::uint32_t first_draft_slot() const { return pages_ * kv::page_tokens; }

  /// See transformer::move_tokens and transformer::key_at.
  void move(std::span<const kv::token_move> moves);
  [[nodiscard]] std::vector<float> key_at(std::size_t layer, std::uint32_t slot) const;

  /// Begins a pass. The runs that are not empty have consecutive rows.
  void begin(std::span<const run> batch);
  /// Scales queries by position (model_shape::temperature_scale). query: [rows, query_width], of all rows of the pass.
  void scale_queries(std::size_t layer, float* query);
  /// Rotates the keys of all rows of the pass and stores them with their values, both [rows, kv_width].
  void store(std::size_t layer, float* key, const float* value);
  /// Rotates queries and attends, both [rows, query_width], for all rows of the pass or only those that want logits.
  void attend(std::size_t layer, bool only_wanted, const float* query, float* attended);

 private:
  /// A run, prepared for the kernels.
  struct prepared_run {
    std::uint32_t first_row = 0;
    std::uint32_t row_count = 0;
    std::uint32_t first_token = 0;                // index in the table of the first row's token
    std::array<std::size_t, 2> tiles_begin = {};  // in tiles_, by storage
    std::array<std::size_t, 2> tiles_end = {};
    std::size_t angles_begin = 0;  // in query_angles_: [offset_count][row_count]
    std::uint32_t offset_count = 0;
  };
  /// Rows [row_begin, row_end) of a run, which are attended together.
  struct row_block {
    std::uint32_t run = 0;
    std::uint32_t row_begin = 0;
    std::uint32_t row_end = 0;
  };
  struct kv_split {
    std::size_t attention;  // index in split_calls_
    std::size_t index;
  };

  void prepare(const run& r);
  void append_slots(const run& r);
  void append_windows(const run& r, prepared_run& p);
  void append_tiles(std::span<const kv::piece> pieces, std::uint32_t token_index, std::size_t storage, prepared_run& p);
  void split_into_blocks(std::uint32_t run_index, std::uint32_t logits_begin);
  void reserve_scratch();
  [[nodiscard]] float query_scale(std::int64_t position) const;
  [[nodiscard]] kernels::kv_view kv_of(std::size_t layer, std::size_t kv_head) const;
  [[nodiscard]] kernels::attention_args attention_of(std::size_t layer, const row_block& block, std::size_t kv_head,
                                                     const float* query, float* attended) const;
  bool split_contexts(std::size_t layer, std::span<const row_block> some_blocks, const float* query, float* attended);

  /// Index in `forms_` and in lists of blocks: 1 for layers with a window.
  [[nodiscard]] std::size_t form_of(std::size_t layer) const { return config_.window_of(layer) != 0 ? 1 : 0; }
  /// Index in `kv_`: 1 if layers with a window have separate storage and this is one of them.
  [[nodiscard]] std::size_t storage_of(std::size_t layer) const {
    return window_pages_ != 0 && config_.window_of(layer) != 0 ? 1 : 0;
  }
  /// Index in `ropes_`.
  [[nodiscard]] std::size_t rope_of(std::size_t layer) const {
    return ropes_.size() > 1 && config_.window_of(layer) != 0 ? 1 : 0;
  }
  [[nodiscard]] std::uint64_t slots_count(std::size_t storage) const {
    return std::uint64_t{storage == 0 ? pages_ + draft_pages(config_) : window_pages_} * kv::page_tokens;
  }

  const weights& w_;
  const model_shape& config_;
  row_products& products_;
  const kernels::kernel_table& table_;
  kv_type type_;
  std::uint32_t pages_, window_pages_;
  std::vector<rope_cache> ropes_;
  std::array<std::uint64_t, 2> bytes_of_page_;  // by storage
  std::array<kernels::memory_block, 2> kv_;     // page by page, each [layers of the storage][kv head] of kv_head_bytes
  std::vector<layer_sizes> sizes_;
  std::array<const layer_sizes*, 2> forms_ = {};  // of a layer of each form, by form_of; null if there is none

  // The current pass.
  std::vector<prepared_run> runs_;
  std::array<std::vector<std::uint32_t>, 2> slots_;  // by storage, by row
  std::array<std::vector<kernels::rope_angles>, 2> key_angles_,
      query_angles_;                                              // indexed as `ropes_`: by row; by run, offset, row
  std::array<std::vector<kernels::attention_tile>, 2> tiles_;     // by storage, by run, in token order
  std::vector<float> query_scales_;                               // by row; empty if none is scaled
  std::vector<std::int32_t> offsets_;                             // distinct offsets of the current run
  std::array<std::vector<row_block>, 2> blocks_, wanted_blocks_;  // by form_of: of all rows; of those that want logits
  std::vector<kernels::attention_args> split_calls_;              // calls for one layer, if contexts are split
  std::vector<kv_split> kv_splits_;
  float_buffer split_records_;
  std::vector<float_buffer> scratch_;  // by worker
};

}  // namespace redline::model
