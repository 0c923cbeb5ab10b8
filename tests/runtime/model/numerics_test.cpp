#include "runtime/model/numerics.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "kernels/int8_tables.hpp"
#include "kernels/weight_blocks.hpp"
#include "runtime/convert/quantize.hpp"
#include "runtime/model/transformer.hpp"
#include "runtime/text/tokenizer.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/test_data.hpp"
#include "tests/support/tiny_model.hpp"

namespace redline::model {
namespace {

using kernels::element_type;
using kernels::int8_table_of;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::shared_ptr<const gguf::gguf_file> file_of(gguf::tensor_type matrices) {
  return test::make_tiny_model({.matrices = matrices}).file();
}
const kernels::kernel_table& scalar() { return *kernels::choose_table("scalar").table; }

TEST(numerics, are_parsed_by_name) {
  EXPECT_EQ(*parse_numerics("auto"), numerics::automatic);
  EXPECT_EQ(*parse_numerics("float"), numerics::float32);
  EXPECT_EQ(*parse_numerics("bf16"), numerics::bf16);
  EXPECT_EQ(*parse_numerics("int8"), numerics::int8);
  for (const char* name : {"", "own", "INT8", "int4"}) {
    const auto parsed = parse_numerics(name);
    ASSERT_FALSE(parsed) << name;
    EXPECT_THAT(parsed.error().describe(),
                HasSubstr("expected auto, float, bf16 or int8, found '" + std::string(name)));
  }
}

TEST(numerics, are_of_integers_for_weights_in_blocks_unless_something_else_is_asked_for) {
  const auto quantised = file_of(gguf::tensor_type::q8_0);
  const auto plain = file_of(gguf::tensor_type::bf16);
  for (const kernels::target_info& t : kernels::list_targets()) {
    if (t.table == nullptr) continue;
    EXPECT_EQ(*table_for(*plain, *t.table, numerics::automatic, element_type::f16), t.table) << t.name;
    const auto* full = *table_for(*quantised, *t.table, numerics::automatic, element_type::f32);
    EXPECT_EQ(full->product_error, 0) << t.name;
    const auto* int8 = int8_table_of(*t.table);
    for (const auto kv : {element_type::f16, element_type::bf16, element_type::q8_0, element_type::i16}) {
      EXPECT_EQ(*table_for(*quantised, *t.table, numerics::automatic, kv), int8 == nullptr ? t.table : int8) << t.name;
    }
    if (int8 == nullptr) continue;
    EXPECT_EQ(*table_for(*quantised, *t.table, numerics::int8, element_type::f32), int8) << t.name;
    EXPECT_TRUE((*table_for(*quantised, *t.table, numerics::float32, element_type::f16))->one_chain) << t.name;
  }
}

TEST(numerics, that_a_file_or_a_target_cannot_do_are_refused_by_name) {
  const auto no_blocks = table_for(*file_of(gguf::tensor_type::bf16), scalar(), numerics::int8, element_type::f16);
  ASSERT_FALSE(no_blocks);
  EXPECT_THAT(no_blocks.error().describe(), AllOf(HasSubstr("int8 numerics"), HasSubstr("this file has none")));
  const auto no_tiles = table_for(*file_of(gguf::tensor_type::q8_0), scalar(), numerics::bf16, element_type::f16);
  ASSERT_FALSE(no_tiles);
  EXPECT_THAT(no_tiles.error().describe(), AllOf(HasSubstr("'scalar'"), HasSubstr("bf16 numerics need AMX")));
}

TEST(numerics, of_an_answer_name_no_target_whose_bits_others_give_too) {
  EXPECT_EQ(describe_numerics(scalar(), element_type::f16), "float products and f16 keys and values");
  for (const kernels::target_info& t : kernels::list_targets()) {
    if (t.table == nullptr || int8_table_of(*t.table) == nullptr) continue;
    EXPECT_EQ(describe_numerics(*int8_table_of(*t.table), element_type::bf16), "int8 products and bf16 keys and values")
        << t.name;
  }
}

std::vector<float> logits_of(std::shared_ptr<const weights> w, const kernels::kernel_table& table,
                             kernels::worker_team& team, std::span<const token> tokens) {
  const auto count = static_cast<std::uint32_t>(tokens.size());
  auto made = transformer::create(std::move(w), table, team, {.pages_count = 8, .rows_max = count});
  const kv::piece piece{0, count, 0};
  const run whole{.tokens = tokens, .table = {&piece, 1}};
  const auto logits = (*made)->forward({&whole, 1});
  return {logits.begin(), logits.end()};
}

class demo_pair : public ::testing::TestWithParam<const char*> {};

TEST_P(demo_pair, gives_the_same_logits_on_every_target_with_int8_numerics) {
  const test::temporary_folder folder;
  kernels::worker_team team(2);
  for (const char* model : {"target", "draft"}) {
    const auto exact =
        gguf::gguf_file::open(test::source_path("bench/demo_models/demo-" + std::string(model) + ".gguf"));
    ASSERT_TRUE(exact);
    const std::string path = folder / (std::string(model) + ".gguf");
    ASSERT_TRUE(convert::quantize(**exact, *convert::output_type::parse(GetParam()), path, team));
    const auto file = *gguf::gguf_file::open(path);
    const auto tokens = (*text::tokenizer::from_file(*file))
                            ->encode("def load(path):\n    with open(path) as f:\n        return json.load(f)\n");
    const auto compute = [&](const kernels::kernel_table& target, numerics how) {
      const auto* table = *table_for(*file, target, how, element_type::f16);
      return logits_of(*load_weights(*file, *table, team), *table, team, tokens);
    };
    const auto expected = compute(scalar(), numerics::int8);
    EXPECT_NE(expected, compute(scalar(), numerics::float32)) << "they are other numerics";
    for (const kernels::target_info& t : kernels::list_targets()) {
      if (t.table == nullptr || t.table == &scalar() || int8_table_of(*t.table) == nullptr) continue;
      EXPECT_EQ(compute(*t.table, numerics::int8), expected) << model << " on " << t.name;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(formats, demo_pair, ::testing::Values("q8_0", "q4_0", "q4_k", "q4_k_m", "q6_k"),
                         [](const auto& name) { return std::string(name.param); });

// Matrices without blocks, and those whose columns are not whole blocks, are multiplied as floats and the others
// as integers.
TEST(numerics, of_integers_leave_other_weights_of_the_file_to_floats) {
  test::tiny_model tiny = test::make_tiny_model({.feed_forward = 112});
  const auto all_floats = tiny.file();
  auto& output = tiny.tensor("blk.0.attn_output.weight");
  const std::size_t columns = output.dimensions[0];
  const std::size_t rows = output.dimensions[1];
  ASSERT_EQ(columns % 32, 0U);
  const std::vector<std::byte> before = output.payload;
  output.type = gguf::tensor_type::q8_0;
  output.payload.assign(rows * kernels::row_bytes(kernels::weight_type::q8_0, columns), std::byte{});
  for (std::size_t i = 0; i < rows; ++i) {
    std::vector<float> row(columns);
    std::memcpy(row.data(), before.data() + i * columns * sizeof(float), columns * sizeof(float));
    kernels::quantize_row(kernels::weight_type::q8_0, row.data(), columns,
                          output.payload.data() + i * output.payload.size() / rows);
  }
  const auto mixed = tiny.file();
  const std::vector<token> tokens{1, 7, 3, 9, 4, 4, 2, 8, 5};
  for (const std::uint32_t threads : {1U, 3U}) {
    kernels::worker_team team(threads);
    const auto compute = [&](const gguf::gguf_file& file, const kernels::kernel_table& table) {
      return logits_of(*load_weights(file, table, team), table, team, tokens);
    };
    const auto expected = compute(*mixed, *int8_table_of(scalar()));
    const auto as_floats = compute(*all_floats, scalar());
    ASSERT_EQ(expected.size(), as_floats.size());
    EXPECT_NE(expected, as_floats);
    for (std::size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(expected[i], as_floats[i], 0.5F);
    for (const kernels::target_info& t : kernels::list_targets()) {
      if (t.table == nullptr || int8_table_of(*t.table) == nullptr) continue;
      EXPECT_EQ(compute(*all_floats, *int8_table_of(*t.table)), as_floats) << t.name;
      EXPECT_EQ(compute(*mixed, *int8_table_of(*t.table)), expected) << t.name;
    }
  }
}

}  // namespace
}  // namespace redline::model
