#include "runtime/grammar/automaton_store.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace redline::grammar {
namespace {

constraint number(int n) { return text_constraint({.text = "{\"const\":" + std::to_string(n) + "}"}); }

TEST(automaton_store, compiles_a_grammar_once) {
  automaton_store store;
  EXPECT_EQ(store.find(number(1)), nullptr);
  const auto one = *store.get(number(1));
  EXPECT_EQ(*store.get(number(1)), one);
  EXPECT_EQ(store.find(number(1)), one);
  auto in_a_state = number(1);
  in_a_state.state = {3};
  in_a_state.copied_min = 0.5F;
  EXPECT_EQ(store.find(in_a_state), one) << "what is not of the automaton";
  EXPECT_NE(*store.get(number(2)), one);
  EXPECT_NE(*store.get(text_constraint({grammar_kind::regex, number(1).text})), one) << "the same text of another kind";
  EXPECT_NE(*store.get(copy_constraint({.files = {{3, 0}}})), *store.get(copy_constraint({.files = {{4, 0}}})));
}

TEST(automaton_store, reports_why_a_grammar_cannot_be_compiled_each_time) {
  automaton_store store;
  for (int i = 0; i < 2; ++i) EXPECT_EQ(store.get(text_constraint({.text = "{"})).error().code, errc::invalid_argument);
  EXPECT_EQ(store.find(text_constraint({.text = "{"})), nullptr);
}

TEST(automaton_store, knows_the_last_ones_and_those_that_others_own) {
  automaton_store store;
  const auto owned = *store.get(number(0));
  std::weak_ptr<const byte_automaton> second = *store.get(number(1));
  for (int i = 2; i < static_cast<int>(automaton_store::owned_max) + 1; ++i) ASSERT_TRUE(store.get(number(i)));
  EXPECT_FALSE(second.expired()) << "the store gave up its own share of the first one";
  EXPECT_EQ(store.find(number(0)), owned);
  ASSERT_TRUE(store.get(number(-1)));
  EXPECT_TRUE(second.expired());
  EXPECT_EQ(store.find(number(1)), nullptr);
  EXPECT_EQ(store.find(number(0)), owned) << "it is used by the test";
  EXPECT_NE(store.find(number(2)), nullptr);
}

TEST(automaton_store, owns_large_ones_up_to_a_number_of_bytes) {
  automaton_store store;
  const auto large = [](int i) {
    return text_constraint({grammar_kind::rules, "root ::= \"" + std::string(32'000, 'x') + std::to_string(i) + "\""});
  };
  const auto size = (*store.get(large(0)))->size_bytes() + large(0).text.size();
  const auto count = static_cast<int>(automaton_store::bytes_max / size) + 1;
  ASSERT_LT(count, static_cast<int>(automaton_store::owned_max)) << "the number of grammars is not what bounds them";
  for (int i = 1; i < count; ++i) ASSERT_TRUE(store.get(large(i)));
  EXPECT_EQ(store.find(large(0)), nullptr);
  EXPECT_NE(store.find(large(1)), nullptr);
}

TEST(automaton_store, can_be_used_by_many_threads) {
  automaton_store store;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&store, t] {
      for (int i = 0; i < 400; ++i) {
        const auto made = store.get(number((i + t) % 200));
        ASSERT_TRUE(made);
        auto s = (*made)->begin();
        EXPECT_TRUE((*made)->advance(s, static_cast<std::uint8_t>(std::to_string((i + t) % 200).front())));
      }
    });
  }
  for (auto& each : threads) each.join();
}

}  // namespace
}  // namespace redline::grammar
