#include "kernels/dispatch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/machine/cpu_features.hpp"
#include "kernels/targets/tables.hpp"

namespace redline::kernels {
namespace {

using ::testing::HasSubstr;

#if defined(__x86_64__)
const std::string_view known = amx_is_built() ? "amx, avx512vnni, avx512, avx2, blas, scalar, avx512fp16, amx_emulated"
                                              : "avx512vnni, avx512, avx2, blas, scalar, avx512fp16";
constexpr const char* foreign = "neon";
#else
constexpr std::string_view known = "neon, scalar";
constexpr const char* foreign = "avx2";
#endif

TEST(dispatch, lists_targets_best_first_and_says_what_the_cpu_lacks) {
  std::string names;
  for (const target_info& t : list_targets()) {
    names += (names.empty() ? "" : ", ") + std::string(t.name);
    EXPECT_EQ(t.table == nullptr, !t.missing.empty()) << t.name;
    if (t.table != nullptr) {
      EXPECT_EQ(t.table->name, t.name);
    }
  }
  EXPECT_EQ(names, known);
}

TEST(dispatch, prefers_the_first_target_that_runs) {
  const auto& all = list_targets();
  const auto best = std::find_if(all.begin(), all.end(), [](const auto& t) { return t.table != nullptr; });
  EXPECT_EQ(choose_table(std::nullopt).table, best->table);
}

TEST(dispatch, takes_a_forced_target_or_says_why_not) {
  for (const target_info& t : list_targets()) {
    const table_choice choice = choose_table(t.name);
    EXPECT_EQ(choice.table, t.table);
    if (t.table == nullptr) {
      EXPECT_THAT(choice.problem, HasSubstr(std::string("this CPU lacks ") + std::string(t.missing)));
    }
  }
  for (const char* name : {"sse9", foreign}) {
    const table_choice unknown = choose_table(name);
    EXPECT_EQ(unknown.table, nullptr);
    EXPECT_THAT(unknown.problem, HasSubstr("'" + std::string(name) + "': expected one of " + std::string(known)));
  }
}

TEST(dispatch, features_imply_their_foundations) {
  const cpu_features& cpu = this_cpu();
  if (cpu.avx512) {
    EXPECT_TRUE(cpu.avx2);
  }
  for (const bool extension : {cpu.avx512_vnni, cpu.avx512_bf16, cpu.avx512_fp16}) {
    if (extension) {
      EXPECT_TRUE(cpu.avx512);
    }
  }
  for (const bool extension : {cpu.neon_dotprod, cpu.neon_i8mm}) {
    if (extension) {
      EXPECT_TRUE(cpu.neon);
    }
  }
  EXPECT_FALSE(cpu.neon && cpu.avx2);
}

TEST(dispatch, fills_every_entry_of_every_table) {
  for (const target_info& t : list_targets()) {
    if (t.table == nullptr) continue;
    const kernel_table& k = *t.table;
    EXPECT_TRUE(k.panel_bytes && k.pack && k.unpack_row && k.gemm && k.rms_norm && k.add_scaled && k.softmax &&
                k.silu_multiply && k.sigmoid_multiply && k.convolve && k.delta_rule && k.layer_norm && k.gelu_multiply && k.rotate && k.rotate_keys && k.store_kv &&
                k.attention && k.narrow && k.widen)
        << t.name;
    EXPECT_GE(k.panels_step, 1U);
    EXPECT_GE(k.attention_vectors, 1U);
  }
}

}  // namespace
}  // namespace redline::kernels
