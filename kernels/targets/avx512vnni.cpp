// Standard headers precede the target: see avx512.cpp.
#include <immintrin.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include "kernels/machine/cpu_features.hpp"
#include "kernels/panel_layout.hpp"
#include "kernels/targets/tables.hpp"

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma,f16c,bmi,bmi2,lzcnt,popcnt")
namespace redline::kernels::avx512vnni {
namespace {
#include "kernels/simd/vec_avx512.inl.hpp"

#include "kernels/simd/ints_avx512.inl.hpp"

#include "kernels/simd/int_dots_avx512vnni.inl.hpp"

#include "kernels/simd/bytes_avx512.inl.hpp"

#include "kernels/simd/byte_dots_avx512vnni.inl.hpp"

#include "kernels/ops/chunks.inl.hpp"

#include "kernels/ops/lane_functions.inl.hpp"

#include "kernels/ops/rope.inl.hpp"

#include "kernels/ops/kv_access.inl.hpp"

#include "kernels/ops/integer_blocks.inl.hpp"

#include "kernels/ops/attention_kv_splits.inl.hpp"

#include "kernels/ops/attention_work.inl.hpp"

#include "kernels/ops/attention_integers.inl.hpp"

#include "kernels/ops/formats.inl.hpp"

/// Used for weights that are not integers.
void gemm(const gemm_args& a) { avx512_table().gemm(a); }

#include "kernels/ops/all_int8.inl.hpp"

void attention(const attention_args& a) {
  if (!holds_integers(a.kv.type)) return avx512_table().attention(a);
  attention_by_integers(a);
}
}  // namespace
}  // namespace redline::kernels::avx512vnni
#pragma GCC pop_options

namespace redline::kernels {
const kernel_table& avx512vnni_table() {
  static const kernel_table table = [] {
    kernel_table t = avx512_table();
    t.name = "avx512vnni";
    t.attention = avx512vnni::attention;
    return t;
  }();
  return table;
}
const kernel_table& avx512vnni_int8_table() {
  static const kernel_table table = avx512vnni::with_int8(avx512vnni_table());
  return table;
}
const kernel_table& best_avx512_table() { return this_cpu().avx512_vnni ? avx512vnni_table() : avx512_table(); }
}  // namespace redline::kernels
