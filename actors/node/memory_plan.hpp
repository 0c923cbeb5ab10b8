#pragma once

#include <cstdint>
#include <string>

#include "runtime/base/result.hpp"
#include "runtime/model/memory_layout.hpp"

namespace redline::actors {

/// What a process needs once its models are loaded, as far as it depends on them. In bytes.
struct memory_plan {
  std::uint64_t weights_bytes = 0;  // packed (model::weight_bytes); the files can leave memory again
  std::uint64_t kv_bytes = 0;       // pools of keys and values
  std::uint64_t buffers_bytes = 0;  // logits and activations of the largest pass
  std::uint64_t limit_bytes = 0;    // the most that this process may use

  /// "weights 0.49 GiB, keys and values 2.00 GiB, buffers 0.30 GiB, of 23.4 GiB".
  [[nodiscard]] std::string describe() const;
  /// Fails if the plan does not fit, before anything is loaded: a process that went on would be killed, or would swap.
  /// The failure says what would fit. model: the name of the model's file.
  [[nodiscard]] result<void> check(const std::string& model) const;
};

/// What a pool of keys and values is for.
struct pool_request {
  std::uint64_t bytes_max = 0;
  std::uint32_t sequences_max = 1;  // computed in turn
  std::uint32_t tokens_max = 1;     // longest sequence
  std::uint32_t rows_max = 1;       // most rows of one sequence in a pass
};

/// The pages for every sequence at full length, as far as the bytes allow. Layers with a window get window pages where
/// that takes less: enough for the windows of one sequence at full length and as many others as fit, since even a short
/// sequence needs a window. Models with recurrent layers get states in at most half of the bytes: one for every
/// sequence and some for prefixes. The rest of the bytes are pages.
[[nodiscard]] kv::pool_size choose_pool(const architecture::model_shape& config, model::kv_type type,
                                        const pool_request& request);

}  // namespace redline::actors
