// Every operation, and a table of them. Included by each targets/*.cpp inside that target's namespace, after its verbs.
// The order of the includes matters; blank lines keep the formatter from sorting them.

#include "kernels/ops/chunks.inl.hpp"

#include "kernels/ops/lane_functions.inl.hpp"

#include "kernels/ops/pointwise.inl.hpp"

#include "kernels/ops/delta.inl.hpp"

#include "kernels/ops/formats.inl.hpp"

#include "kernels/ops/gemm.inl.hpp"

#include "kernels/ops/rope.inl.hpp"

#include "kernels/ops/kv_access.inl.hpp"

#include "kernels/ops/integer_blocks.inl.hpp"

#include "kernels/ops/store_kv.inl.hpp"

#include "kernels/ops/rotate_keys.inl.hpp"

#include "kernels/ops/attention_kv_splits.inl.hpp"

#include "kernels/ops/attention_work.inl.hpp"

#include "kernels/ops/attention_integers.inl.hpp"

#include "kernels/ops/attention.inl.hpp"

#include "kernels/ops/bounds.inl.hpp"

constexpr kernel_table make_table(std::string_view name) {
  return {.name = name,
          .panels_step = 1,
          .attention_vectors = 96,
          .panel_bytes = interleaved_panel_bytes,
          .pack = interleave_panels,
          .unpack_row = unpack_row,
          .gemm = gemm,
          .prepared_bytes = [](std::size_t, std::size_t) -> std::size_t { return 0; },
          .prepare_rows = [](const float*, std::size_t, std::size_t, std::size_t, std::size_t, std::byte*) {},
          .rms_norm = rms_norm,
          .layer_norm = layer_norm,
          .add_scaled = add_scaled,
          .softmax = softmax,
          .silu_multiply = silu_multiply,
          .gelu_multiply = gelu_multiply,
          .clamped_swiglu = clamped_swiglu,
          .soft_cap = soft_cap,
          .sigmoid_multiply = sigmoid_multiply,
          .convolve = convolve,
          .delta_rule = delta_rule,
          .best_of_row = best_of_row,
          .rotate = rotate,
          .store_kv = store_kv,
          .rotate_keys = rotate_keys,
          .attention = attention,
          .join_attention = join_attention,
          .narrow = narrow,
          .widen = widen,
          .multiply_adds_per_iteration = peak_chains * 16,
          .multiply_add_loop = multiply_add_loop,
          .read_loop = read_loop};
}
