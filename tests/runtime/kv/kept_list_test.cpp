#include "runtime/kv/kept_list.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace redline::kv {
namespace {

TEST(kept_list, says_everything_to_one_who_knows_nothing_and_then_what_changes) {
  kept_list list(1000);
  list.update({1, 2, 3});
  const auto all = list.since(0);
  EXPECT_EQ(all, (kept_news{.revision = 1001, .is_all = true, .added = {1, 2, 3}}));
  EXPECT_EQ(list.since(1001), (kept_news{.revision = 1001}));
  list.update({2, 3, 4});
  EXPECT_EQ(list.since(1001), (kept_news{.revision = 1002, .added = {4}, .dropped = {1}}));
  list.update({1, 2, 3});
  EXPECT_EQ(list.since(1001), (kept_news{.revision = 1003, .added = {1}, .dropped = {4}})) << "its final state";
  list.update({3, 1, 2});
  EXPECT_EQ(list.since(1003).revision, 1003u) << "nothing has changed";
}

TEST(kept_list, says_everything_to_one_who_knows_another_list_or_an_old_one) {
  kept_list list(1000);
  for (std::uint64_t i = 0; i < 40; ++i) list.update({i});
  for (const std::uint64_t known : {std::uint64_t{1}, std::uint64_t{999}, std::uint64_t{1010}, std::uint64_t{5000}}) {
    EXPECT_EQ(list.since(known), (kept_news{.revision = 1040, .is_all = true, .added = {39}})) << known;
  }
  EXPECT_FALSE(list.since(1030).is_all);
}

TEST(kept_list, keeps_any_listener_right_who_asks_now_and_then) {
  std::mt19937 random(3);
  kept_list list(77);
  std::vector<std::uint64_t> keys;
  struct listener {
    std::uint64_t revision = 0;
    std::set<std::uint64_t> knows;
  };
  std::vector<listener> listeners(5);
  for (int step = 0; step < 2000; ++step) {
    keys.clear();
    for (std::uint64_t key = 0; key < 30; ++key) {
      if (random() % 3 == 0) keys.push_back(key);
    }
    list.update(keys);
    for (auto& l : listeners) {
      if (random() % (1 + static_cast<unsigned>(&l - listeners.data()) * 8) != 0) continue;
      const auto news = list.since(l.revision);
      if (news.is_all) l.knows.clear();
      for (const auto key : news.dropped) l.knows.erase(key);
      l.knows.insert(news.added.begin(), news.added.end());
      l.revision = news.revision;
      ASSERT_EQ(l.knows, std::set(keys.begin(), keys.end()));
    }
  }
}

}  // namespace
}  // namespace redline::kv
