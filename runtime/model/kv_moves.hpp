#pragma once

#include <vector>

#include "kernels/kernel_table.hpp"
#include "runtime/kv/page_table.hpp"

namespace redline::model {

/// Copies the move's keys and values within one layer and KV head.
void copy_tokens(const kernels::kv_view& kv, const kv::token_move& move, std::size_t head_dim);

/// Appends the slot's key to `out`, as floats.
void append_key(const kernels::kv_view& kv, std::size_t slot, std::size_t head_dim, std::vector<float>& out);

}  // namespace redline::model
