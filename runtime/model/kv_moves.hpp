#pragma once

#include "kernels/kernel_table.hpp"
#include "runtime/kv/page_table.hpp"

namespace redline::model {

/// Copies the move's keys and values inside one (layer, KV head).
void copy_tokens(const kernels::kv_view& kv, const kv::token_move& move, std::size_t head_dim);

}  // namespace redline::model
