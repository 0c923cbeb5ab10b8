#include "bench/studies/common/local_runner.hpp"

#include <gmock/gmock.h>

#include <algorithm>

#include "bench/studies/common/edit_request.hpp"
#include "tests/support/test_data.hpp"

namespace redline::studies {
namespace {

result<std::unique_ptr<local_runner>> demo_runner(std::uint32_t users) {
  engine_options options;
  options.target_path = test::source_path("bench/demo_models/demo-target.gguf");
  options.threads = 1;
  options.kv_bytes_max = 64 << 20;
  return local_runner::create(std::move(options), users);
}

TEST(local_runner, runs_generations_together_and_each_gives_what_it_gives_alone) {
  auto runner = demo_runner(3);
  ASSERT_TRUE(runner) << runner.error().context;
  const draft::draft_options how{.how = draft::method::lookup};
  const auto request = [&](const std::string& name) {
    const edit_task task{"a.py", "def " + name + "(count):\n    return count + 1\n",
                         "Rename the variable `count` to `n`."};
    return *request_of(task, how, (*runner)->parts());
  };
  const std::vector<std::string> names{"first", "second", "third", "fourth", "fifth"};  // more than run at once
  std::vector<generation_spec> requests;
  for (const std::string& name : names) requests.push_back(request(name));
  generation_spec too_long = request("x");
  too_long.prompt.resize((*runner)->parts().context_max() + 1);
  requests.insert(requests.begin() + 1, std::move(too_long));

  std::vector<std::size_t> order;
  const auto each =
      (*runner)->run_each(std::move(requests), how, [&](std::size_t i, const session_text&) { order.push_back(i); });
  ASSERT_TRUE(each) << each.error().context;
  ASSERT_EQ(each->size(), 6U);
  EXPECT_FALSE((*each)[1]);  // only this one fails
  // The first three progress in turns, without waiting for each other's ends.
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto& together = (*each)[i == 0 ? 0 : i + 1];
    ASSERT_TRUE(together) << together.error().context;
    const auto alone = (*runner)->run(request(names[i]), how, [](const session_text&) {});
    ASSERT_TRUE(alone);
    EXPECT_EQ(together->text, alone->text);
    EXPECT_FALSE(alone->text.empty());
  }
}

}  // namespace
}  // namespace redline::studies
