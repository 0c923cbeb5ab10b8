#include "actors/node/engine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "kernels/int8_tables.hpp"
#include "runtime/base/log.hpp"
#include "runtime/convert/quantize.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/test_data.hpp"
#include "tests/support/tiny_model.hpp"

namespace redline::actors {
namespace {

engine_options demo_options() {
  engine_options options;
  options.target_path = test::source_path("bench/demo_models/demo-target.gguf");
  options.threads = 1;
  options.scheduling.limits.running_max = 4;
  return options;
}

TEST(engine, the_context_is_no_longer_than_the_kv_pool) {
  configure_log(log_level::off, log_format::text);
  auto options = demo_options();
  const auto roomy = engine::create(options);
  ASSERT_TRUE(roomy) << roomy.error().describe();
  options.kv_bytes_max = 1 << 20;
  const auto small = engine::create(options);
  ASSERT_TRUE(small) << small.error().describe();
  configure_log(log_level::info, log_format::text);
  EXPECT_LT((*small)->context_max(), (*roomy)->context_max());
  EXPECT_EQ((*small)->context_max() % kv::page_tokens, 0U) << "a sequence of full length fills the pool";
  EXPECT_EQ((*small)->options().scheduling.limits.tokens_max, (*small)->context_max()) << "the queue and the API agree";
}

TEST(engine, times_passes_anew_for_other_numerics) {
  const test::temporary_folder folder;
  const auto known_costs = [&] {
    const std::filesystem::directory_iterator files(folder.path());
    return std::distance(begin(files), end(files));
  };
  const auto start = [&](model::numerics how) {
    auto options = demo_options();
    options.numerics = how;
    options.measuring_max = microseconds{20'000};
    options.cost_folder = folder.path();
    const auto e = engine::create(std::move(options));
    EXPECT_TRUE(e && (*e)->start());
    (*e)->stop();
    return (*e)->numerics();
  };
  const std::string float_numerics = start(model::numerics::float32);
  EXPECT_EQ(known_costs(), 1);
  EXPECT_EQ(start(model::numerics::float32), float_numerics);
  EXPECT_EQ(known_costs(), 1) << "the costs were kept";
  const auto& table = *kernels::process_table().table;
  if (kernels::int8_table_of(table) == nullptr) GTEST_SKIP() << table.name << " multiplies no integers";
  EXPECT_NE(start(model::numerics::int8), float_numerics);
  EXPECT_EQ(known_costs(), 2);
  EXPECT_EQ(start(model::numerics::automatic), start(model::numerics::int8)) << "the demo pair is quantized";
  EXPECT_EQ(known_costs(), 2);
}

// The configured context decides, which is the same on all machines, not the size of the KV pool.
TEST(engine, says_which_factors_of_long_rope_answers_depend_on) {
  const test::temporary_folder folder;
  ASSERT_TRUE(test::make_tiny_model({.architecture = "phi3"}).writer().write(folder / "phi.gguf"));  // 256 are short
  auto options = demo_options();
  options.target_path = folder / "phi.gguf";
  options.kv_bytes_max = 1 << 14;
  configure_log(log_level::off, log_format::text);
  const auto usual = engine::create(options);
  options.context_max = 256;
  const auto brief = engine::create(options);
  configure_log(log_level::info, log_format::text);
  ASSERT_TRUE(usual && brief);
  EXPECT_LT((*usual)->context_max(), 256U);
  EXPECT_THAT((*usual)->numerics(), ::testing::HasSubstr(", rotated for long sequences"));
  EXPECT_THAT((*brief)->numerics(), ::testing::HasSubstr(", rotated for short sequences"));
}

TEST(engine, refuses_numerics_that_the_model_cannot_have) {
  const test::temporary_folder folder;
  kernels::worker_team team(1);
  const auto file = *gguf::gguf_file::open(demo_options().target_path);
  ASSERT_TRUE(convert::quantize(*file, *convert::output_type::parse("f16"), folder / "f16.gguf", team));
  auto options = demo_options();
  options.target_path = folder / "f16.gguf";
  options.numerics = model::numerics::int8;
  const auto refused = engine::create(options);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().describe(), ::testing::HasSubstr("int8 numerics need quantized weights"));
  // A draft model does not affect the answer's bytes, so it uses whatever numerics it can.
  options.target_path = demo_options().target_path;
  options.draft_path = folder / "f16.gguf";
  const auto table = kernels::int8_table_of(*kernels::process_table().table);
  EXPECT_EQ(engine::create(options).has_value(), table != nullptr);
}

}  // namespace
}  // namespace redline::actors
