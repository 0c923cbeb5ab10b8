#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "runtime/model/transformer.hpp"

namespace redline::model {

/// One claim about one kernel target, checked on this machine.
struct self_check {
  std::string target;
  std::string claim;    // "products with Q4_K weights"
  std::string problem;  // what differed; empty if the claim holds

  [[nodiscard]] bool holds() const { return problem.empty(); }
};

struct self_test_options {
  std::span<const kernels::kernel_table* const> tables;  // the tables to check; this CPU must support them
  const kernels::kernel_table& reference;                // the others must match its logits bit for bit
  const gguf::gguf_file& model;                          // a small model: a prompt is computed a few dozen times
  std::uint32_t threads = 2;                             // size of the team that must match the bits of one thread
  std::uint64_t seed = 1;                                // for matrices, rows and prompt
};

/// Checks the guarantees of kernels/README.md and of the transformer for every table, in seconds:
/// - in every weight format, a row alone gives the bits of the definition (for tables that sum in their own order: its
///   value within rounding), and rows in batches give the bits of the rows alone, with one thread and with many;
/// - in every format with blocks, products of integers give the reference's bits, in batches, too;
/// - with every type of keys and values, a prompt gives the same logits over scattered pages as over contiguous ones,
///   in chunks batched with another sequence on many threads as in one run on one thread, and as the reference, also
///   with products of integers.
/// on_check is called with each result as it is found. Fails only if the model cannot be loaded.
result<std::vector<self_check>> self_test(const self_test_options& options,
                                          const std::function<void(const self_check&)>& on_check = {});

}  // namespace redline::model
