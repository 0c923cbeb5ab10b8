#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "runtime/model/transformer.hpp"

namespace redline::model {

/// One claim about one kernel target, tried on this machine.
struct self_check {
  std::string target;
  std::string claim;    // "products with Q4_K weights"
  std::string problem;  // what differed; empty when the claim holds

  [[nodiscard]] bool holds() const { return problem.empty(); }
};

struct self_test_options {
  std::span<const kernels::kernel_table* const> tables;  // to try; this CPU runs them
  const kernels::kernel_table& reference;                // whose logits the others must give, bit for bit
  const gguf::gguf_file& model;                          // a small one: its prompt is computed some dozen times
  std::uint32_t threads = 2;                             // of the team that must give what one thread gives
  std::uint64_t seed = 1;                                // of matrices, rows and prompt
};

/// Tries what kernels/README.md and the transformer promise, with every table, and takes seconds:
/// - in every weight format, rows alone give the bits of the definition (tables that sum in their own order: its
///   value), and rows in batches give the bits of the rows alone, with one thread and with many;
/// - with every type of keys and values, a prompt gives the same logits over scattered pages as over contiguous ones,
///   in chunks beside another sequence with many threads as at once with one, and as with the reference.
/// on_check is called with each result as it is found. Fails only when the model cannot be loaded.
result<std::vector<self_check>> self_test(const self_test_options& options,
                                          const std::function<void(const self_check&)>& on_check = {});

}  // namespace redline::model
