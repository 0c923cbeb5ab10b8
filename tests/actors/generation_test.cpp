#include "actors/generation.hpp"

#include <gtest/gtest.h>

#include "tests/support/tiny_model.hpp"

namespace redline::actors {
namespace {

std::shared_ptr<const text::tokenizer> words() {
  static const auto w = *text::tokenizer::from_file(*test::make_tiny_model().file());
  return w;
}

generation_request request() {
  generation_request g;
  g.prompt = {1, 2, 3};
  g.tokens_max = 100;
  g.context_max = 200;
  return g;
}

generation make(generation_request g) { return *generation::make(std::move(g), words()); }

/// Commits token by token; returns all the text and stops at the end.
std::pair<std::string, std::optional<finish_reason>> say(generation& g, const std::string& text) {
  std::string out;
  for (const token t : words()->encode(text)) {
    const auto step = g.commit(std::vector{t});
    out += step.text;
    if (step.finished) return {out, step.finished};
  }
  return {out, std::nullopt};
}

TEST(generation, refuses_prompts_and_limits_that_make_no_sense) {
  const auto code = [](const generation_request& g) {
    const auto made = generation::make(g, words());
    return made ? std::string("none") : std::string(name_of(made.error().code));
  };
  EXPECT_EQ(code(request()), "none");
  auto g = request();
  g.prompt = {};
  EXPECT_EQ(code(g), "invalid_argument");
  g.prompt = {1, -1};
  EXPECT_EQ(code(g), "invalid_argument");
  g.prompt = {static_cast<token>(words()->size())};
  EXPECT_EQ(code(g), "invalid_argument");
  g = request();
  g.prompt.assign(200, 1);
  EXPECT_EQ(code(g), "context_length_exceeded");
  g.prompt.assign(199, 1);
  EXPECT_EQ(code(g), "none");
  g = request();
  g.tokens_max = 0;
  EXPECT_EQ(code(g), "invalid_argument");
  g = request();
  g.stops = {""};
  EXPECT_NE(code(g), "none");
}

TEST(generation, ends_at_an_end_token_without_keeping_it) {
  auto g = make(request());
  const token end = test::tiny_model::end_of_text + 2;
  ASSERT_TRUE(words()->is_end_of_generation(end));
  const auto step = g.commit(std::vector<token>{'a', 'b', end, 'c'});
  EXPECT_EQ(step.finished, finish_reason::stop);
  EXPECT_EQ(step.tokens, (std::vector<token>{'a', 'b'}));
  EXPECT_EQ(g.output_count(), 2u);
}

TEST(generation, goes_on_past_end_tokens_when_asked) {
  auto wish = request();
  wish.ignore_end = true;
  auto g = make(wish);
  EXPECT_FALSE(g.commit(std::vector<token>{test::tiny_model::end_of_text + 2, 'a'}).finished);
  EXPECT_EQ(g.output_count(), 2u);
}

TEST(generation, ends_at_max_tokens_or_the_context_whichever_is_first) {
  auto wish = request();
  wish.tokens_max = 2;
  auto g = make(wish);
  EXPECT_EQ(g.room(), 2u);
  const auto step = g.commit(std::vector<token>{'a', 'b', 'c'});
  EXPECT_EQ(step.finished, finish_reason::length);
  EXPECT_EQ(step.tokens.size(), 2u);
  wish.tokens_max = 100;
  wish.context_max = 7;
  EXPECT_EQ(make(wish).room(), 4u);
  EXPECT_EQ(make(wish).tokens_max(), 7u);
}

TEST(generation, cuts_at_a_stop_string_however_tokens_cut_it) {
  auto wish = request();
  wish.stops = {"END"};
  auto g = make(wish);
  EXPECT_EQ(say(g, "some texEt EN, then END and more"),
            (std::pair{std::string("some texEt EN, then "), std::optional(finish_reason::stop)}));
}

TEST(generation, gives_text_held_for_a_stop_string_when_the_end_comes) {
  auto wish = request();
  wish.stops = {"END"};
  wish.tokens_max = static_cast<std::uint32_t>(words()->encode("ab EN").size());
  auto g = make(wish);
  EXPECT_EQ(say(g, "ab EN"), (std::pair{std::string("ab EN"), std::optional(finish_reason::length)}));
}

TEST(generation, passes_characters_on_whole) {
  auto wish = request();
  auto g = make(wish);
  const auto bytes = words()->encode("\xc3\xa4");
  ASSERT_EQ(bytes.size(), 2u);
  EXPECT_EQ(g.commit(std::vector{bytes[0]}).text, "");
  EXPECT_EQ(g.commit(std::vector{bytes[1]}).text, "\xc3\xa4");
}

}  // namespace
}  // namespace redline::actors
