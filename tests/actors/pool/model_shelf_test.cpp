#include "actors/pool/model_shelf.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "runtime/base/log.hpp"

namespace redline::actors {
namespace {

std::shared_ptr<served_model> make(const std::string& name, std::uint64_t digest) {
  auto model = std::make_shared<served_model>();
  model->name = name;
  model->digest = digest;
  return model;
}

TEST(model_shelf, shows_what_was_published_and_not_removed) {
  model_shelf shelf;
  EXPECT_TRUE(shelf.snapshot()->empty());
  shelf.publish(make("one", 1));
  const auto before = shelf.snapshot();
  shelf.publish(make("two", 2));
  EXPECT_EQ(before->models().size(), 1U) << "a snapshot does not change";
  EXPECT_EQ(shelf.snapshot()->models().size(), 2U);
  EXPECT_TRUE(shelf.remove(1));
  EXPECT_FALSE(shelf.remove(1));
  EXPECT_EQ(shelf.snapshot()->find("one"), nullptr);
  EXPECT_NE(before->find("one"), nullptr);
}

TEST(model_shelf, replaces_a_model_with_the_same_digest) {
  model_shelf shelf;
  shelf.publish(make("old", 1));
  shelf.publish(make("new", 1));
  EXPECT_EQ(shelf.snapshot()->find("old"), nullptr);
  EXPECT_NE(shelf.snapshot()->find("new"), nullptr);
}

TEST(model_shelf, hands_a_contested_name_on_when_its_owner_leaves) {
  configure_log(log_level::off, log_format::text);
  model_shelf shelf;
  shelf.publish(make("coder", 2));
  shelf.publish(make("coder", 1));
  EXPECT_EQ(shelf.snapshot()->find("coder")->digest, 1U);
  EXPECT_TRUE(shelf.remove(1));
  EXPECT_EQ(shelf.snapshot()->find("coder")->digest, 2U);
}

TEST(model_shelf, a_name_stays_where_it_is_until_its_workers_go) {
  configure_log(log_level::off, log_format::text);
  model_shelf shelf;
  shelf.rank(2, true, 100);
  shelf.publish(make("coder", 2));
  shelf.rank(1, true, 200);
  EXPECT_EQ(shelf.snapshot()->find("coder")->digest, 2U);
  shelf.publish(make("coder", 1));
  EXPECT_EQ(shelf.snapshot()->find("coder")->digest, 2U);
  EXPECT_EQ(shelf.snapshot()->conflicts().size(), 1U);
  shelf.publish(make("coder", 2));  // a worker reported more about it
  EXPECT_EQ(shelf.snapshot()->find("coder")->digest, 2U);
  shelf.rank(2, false, 0);
  EXPECT_EQ(shelf.snapshot()->find("coder")->digest, 1U);
  EXPECT_TRUE(shelf.snapshot()->conflicts().empty());
  EXPECT_FALSE(shelf.remove(7));
  shelf.rank(3, true, 1);
  EXPECT_FALSE(shelf.remove(3)) << "it was never published";
}

TEST(model_shelf, is_read_while_it_changes) {
  model_shelf shelf;
  std::atomic<bool> done{false};
  std::thread reader([&] {
    while (!done) {
      const auto found = shelf.snapshot()->find("a");
      EXPECT_TRUE(found == nullptr || found->digest == 1U);
    }
  });
  for (int i = 0; i < 1000; ++i) {
    shelf.publish(make("a", 1));
    shelf.remove(1);
  }
  done = true;
  reader.join();
}

}  // namespace
}  // namespace redline::actors
