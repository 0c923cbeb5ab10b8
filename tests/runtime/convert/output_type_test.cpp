#include "runtime/convert/output_type.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace redline::convert {
namespace {

output_type type_named(std::string_view name) { return output_type::parse(name).value(); }
weight_type chosen(std::string_view name, std::string_view tensor, std::uint64_t columns = 1024, bool tied = false) {
  return type_for(type_named(name), {tensor, columns, 24, tied});
}

TEST(output_type, every_listed_name_is_understood_and_given_back) {
  std::string rest = output_type_names() + ", ";
  int count = 0;
  for (std::size_t end; (end = rest.find(", ")) != std::string::npos; rest.erase(0, end + 2), ++count) {
    EXPECT_EQ(type_named(rest.substr(0, end)).name(), rest.substr(0, end));
  }
  EXPECT_EQ(count, 18);
  EXPECT_EQ(type_named("Q4_K_M").name(), "q4_k_m");
  const auto unknown = output_type::parse("q8_k");
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().context, testing::HasSubstr("found 'q8_k'"));
}

TEST(output_type, file_types_have_the_numbers_that_other_tools_know) {
  EXPECT_EQ(type_named("f32").file_type(), 0U);
  EXPECT_EQ(type_named("q8_0").file_type(), 7U);
  EXPECT_EQ(type_named("q4_k_m").file_type(), 15U);
  EXPECT_EQ(type_named("bf16").file_type(), 32U);
}

TEST(output_type, columns_that_are_no_whole_blocks_fall_back_to_smaller_ones) {
  EXPECT_EQ(chosen("q4_k", "blk.0.attn_q.weight", 896), weight_type::q5_0);
  EXPECT_EQ(chosen("q5_k", "blk.0.attn_q.weight", 896), weight_type::q5_1);
  EXPECT_EQ(chosen("q6_k", "blk.0.attn_q.weight", 896), weight_type::q8_0);
  for (const char* type : {"q2_k", "q3_k", "iq4_xs"}) {
    EXPECT_EQ(chosen(type, "blk.0.attn_q.weight", 896), weight_type::iq4_nl) << type;
  }
  EXPECT_EQ(chosen("q4_k", "blk.0.attn_q.weight", 80), weight_type::f16);
  EXPECT_EQ(chosen("q8_0", "blk.0.attn_q.weight", 80), weight_type::f16);
  EXPECT_EQ(chosen("bf16", "blk.0.attn_q.weight", 7), weight_type::bf16);
  EXPECT_EQ(chosen("q4_k", "blk.0.attn_q.weight", 512), weight_type::q4_k);
}

TEST(output_type, mixtures_keep_more_bits_where_errors_cost_most) {
  EXPECT_EQ(chosen("q4_k_m", "output.weight"), weight_type::q6_k);
  EXPECT_EQ(chosen("q4_k_m", "token_embd.weight"), weight_type::q4_k);
  EXPECT_EQ(chosen("q4_k_m", "token_embd.weight", 1024, true), weight_type::q6_k);
  EXPECT_EQ(chosen("q4_k_m", "blk.0.attn_v.weight"), weight_type::q6_k);
  EXPECT_EQ(chosen("q4_k_m", "blk.3.attn_v.weight"), weight_type::q4_k);
  EXPECT_EQ(chosen("q4_k_m", "blk.5.ffn_down.weight"), weight_type::q6_k);
  EXPECT_EQ(chosen("q4_k_m", "blk.23.ffn_down.weight"), weight_type::q6_k);
  EXPECT_EQ(chosen("q4_k_m", "blk.0.attn_q.weight"), weight_type::q4_k);
  EXPECT_EQ(chosen("q5_k_m", "blk.4.ffn_down.weight"), weight_type::q5_k);
  EXPECT_EQ(chosen("q4_k", "blk.0.attn_v.weight"), weight_type::q4_k);
  EXPECT_EQ(chosen("q4_k_m", "blk.23.ffn_down_exps.weight"), weight_type::q6_k);
  EXPECT_EQ(chosen("q4_k_m", "blk.0.ffn_gate_inp.weight"), weight_type::f32) << "a router";
  EXPECT_EQ(chosen("q4_0", "blk.0.ffn_up_exps.bias"), weight_type::f32);
  EXPECT_EQ(chosen("q4_0", "blk.0.attn_q_norm.weight", 128), weight_type::f32);
}

TEST(output_type, tensor_types_and_weight_types_are_one_to_one) {
  for (const auto type : kernels::all_weight_types) {
    EXPECT_EQ(to_weight_type(to_tensor_type(type)), type);
    EXPECT_EQ(gguf::name_of(to_tensor_type(type)), kernels::name_of(type));
  }
  EXPECT_EQ(to_weight_type(gguf::tensor_type::q8_k), std::nullopt);
}

}  // namespace
}  // namespace redline::convert
