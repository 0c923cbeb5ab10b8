#include "actors/node/engine.hpp"

#include <gtest/gtest.h>

#include "runtime/base/log.hpp"
#include "tests/support/test_data.hpp"

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
  const auto& limits = (*small)->options().scheduling.limits;
  EXPECT_EQ((*small)->context_max(), limits.pages_count * kv::page_tokens) << "a sequence of full length fits";
  EXPECT_EQ(limits.tokens_max, (*small)->context_max()) << "the scheduler and the API agree";
}

}  // namespace
}  // namespace redline::actors
