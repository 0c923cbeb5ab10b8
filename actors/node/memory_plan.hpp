#pragma once

#include <cstdint>
#include <string>

#include "runtime/base/result.hpp"

namespace redline::actors {

/// What a process will hold once its models are loaded, as far as it depends on them. Bytes.
struct memory_plan {
  std::uint64_t weights_bytes = 0;  // packed (model::weight_bytes); the files themselves can leave memory again
  std::uint64_t kv_bytes = 0;       // pools of keys and values
  std::uint64_t buffers_bytes = 0;  // logits and activations of the largest pass
  std::uint64_t limit_bytes = 0;    // what this process can hold at most

  /// "weights 0.49 GiB, keys and values 2.00 GiB, buffers 0.30 GiB, of 23.4 GiB".
  [[nodiscard]] std::string describe() const;
  /// Fails where it does not fit, before anything is loaded: a process that goes on would be killed, or would swap. The
  /// failure says what would fit. model: the name of its file.
  [[nodiscard]] result<void> check(const std::string& model) const;
};

}  // namespace redline::actors
