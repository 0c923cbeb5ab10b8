#include "runtime/convert/quantize.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "kernels/weight_blocks.hpp"
#include "runtime/gguf/gguf_writer.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/test_data.hpp"
#include "tests/support/tiny_model.hpp"

namespace redline::convert {
namespace {

using testing::HasSubstr;

constexpr test::tiny_shape wide = {.width = 256, .head_dim = 64, .rotary_dim = 64, .feed_forward = 512};

output_type named(std::string_view name) { return output_type::parse(name).value(); }

class quantize_test : public testing::Test {
 protected:
  std::shared_ptr<const gguf::gguf_file> written(const gguf::gguf_writer& model, const std::string& name) {
    EXPECT_TRUE(model.write(folder_ / name));
    return gguf::gguf_file::open(folder_ / name).value();
  }
  std::shared_ptr<const gguf::gguf_file> quantized(const gguf::gguf_file& from, std::string_view type) {
    const std::string path = folder_ / (std::to_string(++count_) + ".gguf");
    const auto done = quantize(from, named(type), path, team_);
    EXPECT_TRUE(done) << done.error().describe();
    return gguf::gguf_file::open(path).value();
  }
  std::string refusal(const gguf::gguf_file& from, const std::string& path) {
    const auto done = quantize(from, named("q8_0"), path, team_);
    return done ? "none" : done.error().context;
  }

  const test::temporary_folder folder_;
  kernels::worker_team team_{2};
  int count_ = 0;
};

std::vector<float> weights_of(const gguf::tensor& t) {
  std::vector<float> x(t.element_count());
  kernels::dequantize_row(*to_weight_type(t.type), t.bytes.data(), x.size(), x.data());
  return x;
}

/// The result of quantize_row for a tensor's weights, row by row.
std::vector<std::byte> requantized(const gguf::tensor& t, weight_type type) {
  const std::size_t columns = t.dimensions.front(), row_size = kernels::row_bytes(type, columns);
  const auto x = weights_of(t);
  std::vector<std::byte> bytes(x.size() / columns * row_size);
  for (std::size_t row = 0; row < x.size() / columns; ++row) {
    kernels::quantize_row(type, x.data() + row * columns, columns, bytes.data() + row * row_size);
  }
  return bytes;
}

std::vector<std::byte> bytes_of(const gguf::tensor& t) { return {t.bytes.begin(), t.bytes.end()}; }

TEST_F(quantize_test, every_matrix_becomes_what_quantize_row_makes_of_it) {
  const auto from = written(test::make_tiny_model(wide).writer(), "in.gguf");
  for (const char* name : {"f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "q4_k", "q5_k", "q6_k", "q2_k",
                           "q3_k", "iq4_nl", "iq4_xs", "mxfp4"}) {
    const auto to = quantized(*from, name);
    ASSERT_EQ(to->tensors().size(), from->tensors().size());
    for (const gguf::tensor& t : from->tensors()) {
      const gguf::tensor& other = *to->find_tensor(t.name);
      const bool vector = t.dimensions.size() == 1;
      ASSERT_EQ(*to_weight_type(other.type), vector ? weight_type::f32 : named(name).base) << t.name;
      EXPECT_EQ(bytes_of(other), requantized(t, *to_weight_type(other.type))) << name << " " << t.name;
    }
  }
}

TEST_F(quantize_test, every_type_can_be_read) {
  const auto exact = written(test::make_tiny_model(wide).writer(), "in.gguf");
  for (const weight_type type : kernels::all_weight_types) {
    auto mixed = wide;
    mixed.matrices = to_tensor_type(type);
    const auto from = is_written(type) ? quantized(*exact, kernels::name_of(type))
                                       : written(test::make_tiny_model(mixed).writer(), "read.gguf");
    const auto to = quantized(*from, "f32");
    for (const gguf::tensor& t : from->tensors()) {
      EXPECT_EQ(weights_of(*to->find_tensor(t.name)), weights_of(t)) << t.name;
    }
  }
}

TEST_F(quantize_test, a_matrix_that_has_its_type_already_is_copied) {
  const auto exact = written(test::make_tiny_model(wide).writer(), "in.gguf");
  const auto once = quantized(*exact, "q4_k");
  const auto twice = quantized(*once, "q4_k");
  EXPECT_EQ(test::read_file(once->path()), test::read_file(twice->path()));
}

TEST_F(quantize_test, metadata_is_kept_but_for_what_says_the_type) {
  gguf::gguf_writer writer = test::make_tiny_model().writer();
  writer.put_u32("general.file_type", 0);
  writer.put_u32("general.alignment", 64);
  writer.align_to(64);
  const auto from = written(writer, "in.gguf");
  const auto to = quantized(*from, "q8_0");
  EXPECT_EQ(to->get_unsigned("general.file_type").value(), 7U);
  EXPECT_EQ(to->get_unsigned("general.quantization_version").value(), 2U);
  EXPECT_EQ(to->metadata().size(), from->metadata().size() + 1);
  EXPECT_EQ(to->get_float("llama.rope.freq_base").value(), from->get_float("llama.rope.freq_base").value());
  EXPECT_EQ(to->get_array("tokenizer.ggml.tokens").value()->strings,
            from->get_array("tokenizer.ggml.tokens").value()->strings);
  EXPECT_EQ(to->get_array("tokenizer.ggml.token_type").value()->numbers,
            from->get_array("tokenizer.ggml.token_type").value()->numbers);
}

TEST_F(quantize_test, a_mixture_looks_at_layers_and_at_the_tied_head) {
  const auto from = written(test::make_tiny_model(wide).writer(), "in.gguf");
  const auto to = quantized(*from, "q4_k_m");
  EXPECT_EQ(to->find_tensor("token_embd.weight")->type, gguf::tensor_type::q6_k);
  EXPECT_EQ(to->find_tensor("blk.0.attn_q.weight")->type, gguf::tensor_type::q4_k);
  EXPECT_EQ(to->find_tensor("blk.1.attn_v.weight")->type, gguf::tensor_type::q6_k);
}

TEST_F(quantize_test, the_file_that_is_read_is_never_written) {
  const auto from = written(test::make_tiny_model().writer(), "in.gguf");
  const std::string before = test::read_file(from->path());
  EXPECT_THAT(refusal(*from, from->path()), HasSubstr("expected an output file that is not also read"));
  std::filesystem::create_symlink(from->path(), folder_ / "link.gguf");
  std::filesystem::create_hard_link(from->path(), folder_ / "second.gguf");
  EXPECT_THAT(refusal(*from, folder_ / "link.gguf"), HasSubstr("expected an output file that is not also read"));
  EXPECT_THAT(refusal(*from, folder_ / "second.gguf"), HasSubstr("expected an output file that is not also read"));
  EXPECT_EQ(test::read_file(from->path()), before);
}

TEST_F(quantize_test, what_cannot_be_requantised_is_refused_by_its_name) {
  test::tiny_model m = test::make_tiny_model(wide);
  test::tiny_tensor& t = m.tensor("blk.1.ffn_gate.weight");
  t.type = gguf::tensor_type::q8_k;
  t.payload.resize(256 * 512 / 256 * 292);
  EXPECT_THAT(refusal(*written(m.writer(), "in.gguf"), folder_ / "out.gguf"),
              HasSubstr("tensor 'blk.1.ffn_gate.weight': expected a type that Redline reads, found Q8_K"));
  m = test::make_tiny_model();
  m.metadata.erase("llama.block_count");
  EXPECT_THAT(refusal(*written(m.writer(), "in.gguf"), folder_ / "out.gguf"), HasSubstr("llama.block_count"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out.gguf"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out.gguf.tmp"));
  EXPECT_THAT(refusal(*written(test::make_tiny_model().writer(), "in.gguf"), folder_ / "absent/out.gguf"),
              HasSubstr("cannot be written"));
}

}  // namespace
}  // namespace redline::convert
