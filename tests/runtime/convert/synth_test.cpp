#include "runtime/convert/synth.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/weight_blocks.hpp"
#include "runtime/architecture/shape_keys.hpp"
#include "runtime/gguf/gguf_writer.hpp"
#include "runtime/text/tokenizer.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/test_data.hpp"
#include "tests/support/tiny_model.hpp"

namespace redline::convert {
namespace {

using testing::HasSubstr;

synth_options tiny(std::string_view type = "q8_0", std::string_view shape = "tiny") {
  return {find_shape(shape).value(), output_type::parse(type).value(), 7, nullptr};
}
std::string synthetic(const test::temporary_folder& folder, const synth_options& options, std::uint32_t threads = 1) {
  static int count = 0;
  const std::string path = folder / ("m" + std::to_string(++count) + ".gguf");
  kernels::worker_team team(threads);
  const auto written = write_synthetic(options, path, team);
  EXPECT_TRUE(written) << written.error().describe();
  return path;
}
std::shared_ptr<const gguf::gguf_file> opened(const std::string& path) {
  auto file = gguf::gguf_file::open(path);
  EXPECT_TRUE(file) << file.error().describe();
  return *file;
}
std::vector<float> made_weights_of(const gguf::tensor& t) {
  std::vector<float> x(t.element_count());
  kernels::dequantize_row(*to_weight_type(t.type), t.bytes.data(), x.size(), x.data());
  return x;
}

TEST(synth, every_type_and_architecture_loads_as_a_model_with_a_tokenizer) {
  const test::temporary_folder folder;
  for (const char* shape : {"tiny", "tiny-llama", "tiny-mixtral", "tiny-qwen2moe", "tiny-qwen3moe", "tiny-gemma2",
                            "tiny-gemma3", "tiny-gemma4", "tiny-gemma4-moe", "tiny-gpt-oss", "tiny-phi", "tiny-olmo2",
                            "tiny-glm4", "tiny-command-r", "tiny-deepseek2"}) {
    for (const char* type :
         {"f32", "bf16", "q8_0", "q4_0", "q4_k", "q4_k_m", "q5_k", "q6_k", "q2_k", "iq4_xs", "mxfp4"}) {
      const auto file = opened(synthetic(folder, tiny(type, shape)));
      const auto config = architecture::read_shape(*file);
      ASSERT_TRUE(config) << config.error().describe();
      const bool gemma = std::string(shape).find("gemma") != std::string::npos;
      EXPECT_EQ(config->layers, find_shape(shape)->layers);
      EXPECT_EQ(config->vocabulary, 512U);
      EXPECT_EQ(config->tied_head, std::string(shape) == "tiny" || std::string(shape) == "tiny-qwen3moe" || gemma ||
                                       std::string(shape) == "tiny-phi" || std::string(shape) == "tiny-command-r");
      const bool is_mixture = std::string(shape).ends_with("moe") || std::string(shape) == "tiny-mixtral" ||
                              std::string(shape) == "tiny-gpt-oss" || std::string(shape) == "tiny-deepseek2";
      EXPECT_EQ(config->experts, is_mixture ? 8U : 0U);
      EXPECT_EQ(file->get_unsigned("general.file_type").value(), output_type::parse(type)->file_type());
      const auto words = text::tokenizer::from_file(*file);
      ASSERT_TRUE(words) << words.error().describe();
      const std::string text = "the <|im_end|> Zürich \n";
      EXPECT_EQ((*words)->decode((*words)->encode(text, {})).value(), text);
      EXPECT_EQ((*words)->encode("<|im_end|>", {.parse_special = true}), (std::vector<token>{2}));
    }
  }
}

TEST(synth, the_same_seed_gives_the_same_bytes_with_any_number_of_threads) {
  const test::temporary_folder folder;
  const auto once = test::read_file(synthetic(folder, tiny("q4_k_m"), 1));
  EXPECT_EQ(test::read_file(synthetic(folder, tiny("q4_k_m"), 3)), once);
  auto other = tiny("q4_k_m");
  other.seed = 8;
  EXPECT_NE(test::read_file(synthetic(folder, other)), once);
}

TEST(synth, one_seed_gives_the_same_weights_in_every_type) {
  const test::temporary_folder folder;
  const auto exact = opened(synthetic(folder, tiny("f32"))), rough = opened(synthetic(folder, tiny("q4_0")));
  for (const gguf::tensor& t : exact->tensors()) {
    const auto x = made_weights_of(t), y = made_weights_of(*rough->find_tensor(t.name));
    double error = 0, all = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      error += std::pow(x[i] - y[i], 2);
      all += std::pow(x[i], 2);
    }
    EXPECT_LT(error, 0.01 * all) << t.name;
  }
}

TEST(synth, weights_have_the_spread_that_keeps_activations_in_size) {
  const test::temporary_folder folder;
  const auto file = opened(synthetic(folder, tiny("f32")));
  const auto moments = [&](std::string_view name) {
    const auto x = made_weights_of(*file->find_tensor(name));
    double sum = 0, squares = 0;
    for (const float v : x) sum += v, squares += double{v} * v;
    const double mean = sum / static_cast<double>(x.size());
    return std::pair(mean, std::sqrt(squares / static_cast<double>(x.size()) - mean * mean));
  };
  const auto [up_mean, up_spread] = moments("blk.1.ffn_up.weight");
  EXPECT_NEAR(up_mean, 0, 0.001);
  EXPECT_NEAR(up_spread, 1 / 16.0, 0.001);
  const auto [norm_mean, norm_spread] = moments("blk.0.attn_norm.weight");
  EXPECT_NEAR(norm_mean, 1, 0.03);
  EXPECT_NEAR(norm_spread, 0.1, 0.02);
  EXPECT_NE(made_weights_of(*file->find_tensor("blk.0.ffn_up.weight")),
            made_weights_of(*file->find_tensor("blk.1.ffn_up.weight")));
}

TEST(synth, a_tokenizer_is_taken_over_and_padded) {
  const test::temporary_folder folder;
  const auto from = test::make_tiny_model().file();
  auto options = tiny();
  options.tokenizer = from.get();
  const auto file = opened(synthetic(folder, options));
  const auto mine = text::tokenizer::from_file(*from).value(), taken = text::tokenizer::from_file(*file).value();
  EXPECT_EQ(taken->size(), 512U);
  EXPECT_EQ(taken->vocab().digest(), mine->vocab().digest());
  EXPECT_EQ(taken->vocab().type(511), text::token_type::unused);
  EXPECT_EQ(taken->encode("then <|im_start|>", {}), mine->encode("then <|im_start|>", {}));

  options.shape.vocabulary = 100;
  kernels::worker_team team(1);
  const auto refused = write_synthetic(options, folder / "x.gguf", team);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().context,
              HasSubstr("expected at most 100 tokens, the size of the model's vocabulary, found 300"));
}

TEST(synth, kinds_of_layers_repeat_in_deeper_shapes) {
  const test::temporary_folder folder;
  synth_options options = tiny("q8_0", "tiny-lfm2");
  for (const std::uint32_t layers : {3U, 4U, 11U}) {
    options.shape.set_layers(layers);
    const auto config = architecture::read_shape(*opened(synthetic(folder, options)));
    ASSERT_TRUE(config) << config.error().describe();
    ASSERT_EQ(config->layers, layers);
    EXPECT_EQ(config->attention_layers(), layers == 11 ? 3U : 1U);
    EXPECT_FALSE(config->is_recurrent(2));
  }
  options = tiny("q8_0", "tiny-gemma4");
  options.shape.set_layers(9);
  const auto config = architecture::read_shape(*opened(synthetic(folder, options)));
  ASSERT_TRUE(config) << config.error().describe();
  EXPECT_EQ(config->varied->sharing_layers, 3U) << "a third of them, as in six";
}

TEST(synth, impossible_shapes_are_refused_in_words) {
  const test::temporary_folder folder;
  kernels::worker_team team(1);
  const auto refusal = [&](auto change) {
    synth_options options = tiny();
    change(options.shape);
    const auto written = write_synthetic(options, folder / "x.gguf", team);
    return written ? std::string("none") : written.error().context;
  };
  EXPECT_THAT(refusal([](auto& s) { s.kv_heads = 3; }),
              HasSubstr("expected a multiple of the 3 heads for keys and values, found 4"));
  EXPECT_THAT(refusal([](auto& s) { s.head_dim = 63; }), HasSubstr("even head size"));
  EXPECT_THAT(refusal([](auto& s) { s.layers = 0; }), HasSubstr("found 0"));
  EXPECT_THAT(refusal([](auto& s) {
                s = find_shape("tiny-lfm2").value();
                s.layers = 40;
              }),
              HasSubstr("expected kinds of 40 layers, found 4"));
  EXPECT_THAT(refusal([](auto& s) {
                s = find_shape("tiny-lfm2").value();
                s.set_layers(2);
              }),
              HasSubstr("expected a layer with attention among 2"));
  const auto refused_latents = [&](auto change) {
    return refusal([&](auto& s) {
      s = find_shape("tiny-deepseek2").value();
      change(s);
    });
  };
  EXPECT_THAT(refused_latents([](auto& s) { s.rotary_dim = 0; }), HasSubstr("rotated dimensions from 1 to 511"));
  EXPECT_THAT(refused_latents([](auto& s) { s.head_dim = 64; }), HasSubstr("expected a head size of 288"));
  EXPECT_THAT(refused_latents([](auto& s) { s.latent->rank = 0; }), HasSubstr("a latent rank from 1 to 992, found 0"));
  EXPECT_THAT(refused_latents([](auto& s) { s.latent->rank = 993; }), HasSubstr("a latent rank from 1 to 992"));
  EXPECT_THAT(refused_latents([](auto& s) { s.latent->value_dim = 600; }),
              HasSubstr("a value size from 1 to 512, found 600"));
  EXPECT_THAT(refused_latents([](auto& s) { s.kv_heads = 2; }), HasSubstr("heads for keys and values from 1 to 1"));
  EXPECT_THAT(refused_latents([](auto& s) { s.shared_feed_forward = 300; }),
              HasSubstr("300 in total, with 256 for each"));
  EXPECT_THAT(find_shape("qwen9").error().context, HasSubstr("qwen2-0.5b"));
}

}  // namespace
}  // namespace redline::convert
