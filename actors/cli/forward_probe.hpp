#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "actors/cli/stopwatch.hpp"
#include "kernels/machine_bounds.hpp"
#include "runtime/kv/page_pool.hpp"
#include "runtime/model/transformer.hpp"

namespace redline::actors::cli {

/// The cost of one forward pass over `rows` tokens after `context` others.
struct forward_cell {
  std::uint32_t rows = 0;
  std::uint32_t context = 0;
  double best_ms = 0;
  double median_ms = 0;
  std::uint32_t samples = 0;
  double bytes = 0;            // bytes a pass must read: weights once, attended KV
  double product_flops = 0;    // multiply-adds of rows and weights, counted twice
  double attention_flops = 0;  // the same for attention, with its exponentials
  double experts = 0;          // distinct experts touched, over all layers; 0 if dense
  model::transformer::times spent;

  /// Fractions of the machine's bounds that the best pass reaches.
  [[nodiscard]] double of_read_bound(const kernels::machine_bounds& b) const {
    return bytes / (best_ms / 1e3) / b.read_bytes_per_second;
  }
  /// The minimum seconds by this CPU's arithmetic: products with their scales, then attention's floats.
  [[nodiscard]] double arithmetic_seconds(const kernels::machine_bounds& b) const {
    return product_flops / b.product_flops_per_second + attention_flops / b.float_flops_per_second;
  }
  [[nodiscard]] double of_arithmetic_bound(const kernels::machine_bounds& b) const {
    return arithmetic_seconds(b) / (best_ms / 1e3);
  }
};

/// Measures a model on a sequence of synthetic tokens. `table` and `team` must outlive it.
class forward_probe {
 public:
  struct options {
    std::uint32_t rows_max = 128;    // per pass
    std::uint32_t tokens_max = 128;  // in the sequence
    model::kv_type kv = model::kv_type::f16;
    bool last_only = false;             // logits of the last row only, otherwise of all rows
    std::uint32_t distinct_tokens = 0;  // number of different tokens; 0: the whole vocabulary
    bool profile = false;
    clock_kind clock = clock_kind::wall;
  };
  static result<std::unique_ptr<forward_probe>> create(const gguf::gguf_file& file,
                                                       std::shared_ptr<const model::weights> weights,
                                                       const kernels::kernel_table& table, kernels::worker_team& team,
                                                       const options& how);

  /// Computes keys and values until the sequence has this many tokens.
  void grow_context(std::uint32_t tokens);

  /// Measures at least this many passes and for at least this time.
  struct effort {
    std::uint32_t samples = 5;
    double seconds = 1;
  };
  /// Measures passes of `rows` tokens after the sequence, which stays unchanged.
  forward_cell measure(std::uint32_t rows, const effort& how_long);
  /// Applies to later passes.
  void want_logits(bool last_only) { how_.last_only = last_only; }

 private:
  /// Bytes of the file's tensors, as passes read them.
  struct weight_bytes {
    std::uint64_t always = 0;   // all tensors; only rows of an embedding that is not the head
    std::uint64_t experts = 0;  // all experts; a pass reads those that it touches
  };
  static weight_bytes bytes_of(const gguf::gguf_file& file, const architecture::model_shape& config);

  forward_probe(std::unique_ptr<model::transformer> m, const weight_bytes& weights, std::uint32_t pages,
                const options& how);
  void pass(std::uint32_t rows, bool logits);
  void count_work(forward_cell& c) const;

  std::unique_ptr<model::transformer> model_;
  kv::page_pool pool_;
  kv::page_table table_;
  std::vector<token> tokens_;
  options how_;
  weight_bytes weights_;
};

}  // namespace redline::actors::cli
