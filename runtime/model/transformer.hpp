#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/dispatch.hpp"
#include "kernels/worker_team.hpp"
#include "runtime/base/result.hpp"
#include "runtime/gguf/gguf_file.hpp"
#include "runtime/kv/page_pool.hpp"
#include "runtime/model/batch.hpp"
#include "runtime/model/memory_layout.hpp"

namespace redline::model {

/// A model's weights, repacked for one kernel target. Immutable; may be shared.
class weights;

/// Checks every tensor's name, shape and type against the configuration, then repacks it (in parallel on `team`). Calls
/// progress(done_bytes, all_bytes) repeatedly. context_max: the maximum number of tokens of a sequence; 0 means the
/// model's context. It matters for models with LongRoPE (uses_long_factors). Failures name the tensor.
result<std::shared_ptr<const weights>> load_weights(
    const gguf::gguf_file& file, const kernels::kernel_table& table, kernels::worker_team& team,
    const std::function<void(std::uint64_t, std::uint64_t)>& progress = {}, std::uint32_t context_max = 0);

[[nodiscard]] const model_shape& shape_of(const weights& w);
/// Bytes of memory for the file's weights, repacked for the table.
[[nodiscard]] std::uint64_t weight_bytes(const gguf::gguf_file& file, const kernels::kernel_table& table);

struct expert_use;  // feed_forward.hpp

/// Runs forward passes of one model over its own KV storage. One thread may call it; `team` shares the work. The bits
/// of a row's logits depend only on the row's sequence: not on the batch, the chunking, the pieces of the page table,
/// or the number of threads.
class transformer {
 public:
  struct options {
    std::uint32_t pages_count = 0;
    std::uint32_t window_pages_count = 0;  // separate storage for layers with a window; 0 means shared storage
    std::uint32_t state_slots = 0;         // for models with recurrent layers: states of sequences,
    std::uint32_t state_copies = 0;        // copies of states, in slots that follow those,
    std::uint32_t records_max = 0;         // and the most rows of a run that a state need not have afterwards
    kv_type kv = kv_type::f16;
    std::uint32_t rows_max = 512;  // maximum rows of one pass; buffers are sized for them
    std::uint32_t logits_rows_max =
        0;                 // limit of rows that want logits, whose buffer is allocated at once; 0 means all rows
    bool profile = false;  // measure time_spent()
  };
  /// Fails if the KV storage cannot be allocated.
  static result<std::unique_ptr<transformer>> create(std::shared_ptr<const weights> w,
                                                     const kernels::kernel_table& table, kernels::worker_team& team,
                                                     options how);
  ~transformer();

  [[nodiscard]] const model_shape& config() const;
  /// The threads that share a pass, for processing its logits before the next one.
  [[nodiscard]] kernels::worker_team& team() const;
  [[nodiscard]] kv::pool_size size() const;
  [[nodiscard]] std::uint32_t rows_max() const;
  [[nodiscard]] std::uint32_t logits_rows_max() const;

  /// Seconds spent so far in each part of a pass, if options.profile is set.
  struct times {
    double prepare = 0;  // tables, tiles and angles of the batch; embedding
    double query_key_value = 0;
    double store = 0;  // rotating and storing keys and values
    double attention = 0;
    double recurrence = 0;    // recurrent layers, without their output projection
    double output = 0;        // the output projection of attention
    double feed_forward = 0;  // gate, up and down
    double norms = 0;
    double head = 0;
    double mtp = 0;  // the MTP layer's part of passes, without drafts
  };
  [[nodiscard]] const times& time_spent() const;
  /// How much a mixture of experts was used so far; zeros in a dense model.
  [[nodiscard]] const expert_use& experts() const;

  /// Copies keys and values between slots and rotates keys, in every layer, one move after the other. In layers with
  /// separate storage it uses that storage's slots, if the move has any. The caller guarantees that slots are within
  /// the storage.
  void move_tokens(std::span<const kv::token_move> moves);

  /// Copies states of sequences between their slots, one after the other.
  void copy_states(std::span<const kv::state_copy> copies);

  /// The stored keys of one slot (of the layer's storage), for all heads of a layer consecutively; for benchmarks.
  [[nodiscard]] std::vector<float> key_at(std::uint32_t layer, std::uint32_t slot) const;

  /// Computes the batch's keys and values into their slots, and logits. Returns [rows with logits, vocabulary] in batch
  /// order, valid until the next call. The caller guarantees: at most rows_max() rows, of which at most
  /// logits_rows_max() want logits; token ids within the vocabulary; slots within the storage, none written twice;
  /// window tables that cover what is seen; states that belong to the tokens before the run.
  std::span<const float> forward(std::span<const run> batch);

  /// Computes a pass without the output head, for callers that may not need all rows: the head is then computed in
  /// steps. Returns how many rows want logits, in batch order.
  std::size_t forward_body(std::span<const run> batch);
  /// The logits [rows, vocabulary] of some of these rows (by index, in any order), or the best of each. Valid until the
  /// next call of any of these.
  std::span<const float> logits_of(std::span<const std::uint32_t> rows);
  std::span<const kernels::row_best> best_of(std::span<const std::uint32_t> rows);
  /// The best of a row that logits_of returned; thread-safe.
  [[nodiscard]] kernels::row_best best_of_row(std::span<const float> logits) const;
  /// A draft of the MTP layer: what follows the output of a row of the last pass, with the token that was chosen for
  /// it.
  struct mtp_start {
    std::size_t run = 0;    // index in the batch
    std::uint32_t row = 0;  // of the run
  };
  struct mtp_row {
    std::uint32_t draft = 0;  // index of a start
    token next = 0;           // the draft's first token, or its last one
  };
  /// Begins drafts after the last pass, whose batch is given again: at most mtp_drafts_max, each after a run of its own
  /// with rows that wanted logits. Requires an MTP layer.
  void begin_drafts(std::span<const run> batch, std::span<const mtp_start> starts);
  /// Continues some drafts by a row each, at most mtp_tokens_max times. Returns logits [rows, tokens that it drafts],
  /// valid until the next call of any of these. The layer's keys and values of these rows are not kept.
  std::span<const float> draft(std::span<const mtp_row> rows);
  /// Tokens below this number are drafted; 0 without an MTP layer.
  [[nodiscard]] std::uint32_t mtp_vocabulary() const;

  /// The number of rows for which one step of the head is about as fast as for one row.
  [[nodiscard]] std::size_t head_step_rows() const;

 private:
  struct state;
  explicit transformer(std::unique_ptr<state> s);
  std::unique_ptr<state> state_;
};

}  // namespace redline::model
