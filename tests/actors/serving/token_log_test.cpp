#include "actors/serving/token_log.hpp"

#include <gtest/gtest.h>

#include "tests/support/tiny_model.hpp"

namespace redline::actors {
namespace {

std::shared_ptr<const text::tokenizer> tokenizer() {
  static const auto w = *text::tokenizer::from_file(*test::make_tiny_model().file());
  return w;
}

generation_spec request() {
  generation_spec g;
  g.prompt = {1, 2, 3};
  g.tokens_max = 100;
  g.context_max = 200;
  return g;
}

token_log make(generation_spec g) { return *token_log::make(std::move(g), tokenizer()); }

/// Commits token by token; returns all the text and stops at the end.
std::pair<std::string, std::optional<finish_reason>> say(token_log& g, const std::string& text) {
  std::string out;
  for (const token t : tokenizer()->encode(text)) {
    const auto step = g.commit(std::vector{t});
    out += step.text;
    if (step.finished) return {out, step.finished};
  }
  return {out, std::nullopt};
}

TEST(token_log, refuses_prompts_and_limits_that_make_no_sense) {
  const auto code = [](const generation_spec& g) {
    const auto made = token_log::make(g, tokenizer());
    return made ? std::string("none") : std::string(name_of(made.error().code));
  };
  EXPECT_EQ(code(request()), "none");
  auto g = request();
  g.prompt = {};
  EXPECT_EQ(code(g), "invalid_argument");
  g.prompt = {1, -1};
  EXPECT_EQ(code(g), "invalid_argument");
  g.prompt = {static_cast<token>(tokenizer()->size())};
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
  g = request();
  g.sampling.logit_bias = {{5, 1.0F}, {static_cast<token>(tokenizer()->size()), 1.0F}};
  EXPECT_EQ(code(g), "invalid_argument");
  g.sampling.logit_bias.pop_back();
  EXPECT_EQ(code(g), "none");
}

TEST(token_log, ends_at_an_end_token_without_keeping_it) {
  auto g = make(request());
  const token end = test::tiny_model::end_of_text + 2;
  ASSERT_TRUE(tokenizer()->is_end_of_generation(end));
  const auto step = g.commit(std::vector<token>{'a', 'b', end, 'c'});
  EXPECT_EQ(step.finished, finish_reason::stop);
  EXPECT_EQ(step.tokens, (std::vector<token>{'a', 'b'}));
  EXPECT_EQ(g.output_count(), 2u);
}

TEST(token_log, has_control_tokens_in_its_text_when_asked) {
  const token control = test::tiny_model::end_of_text + 3;
  for (const bool shows : {false, true}) {
    auto g = request();
    g.shows_control = shows;
    auto log = make(g);
    EXPECT_EQ(log.commit(std::vector{control}).text, shows ? "<|fim_prefix|>" : "");
  }
}

TEST(token_log, goes_on_past_end_tokens_when_asked) {
  auto wish = request();
  wish.ignore_end = true;
  auto g = make(wish);
  EXPECT_FALSE(g.commit(std::vector<token>{test::tiny_model::end_of_text + 2, 'a'}).finished);
  EXPECT_EQ(g.output_count(), 2u);
}

TEST(token_log, ends_at_a_stop_token_of_the_request_without_keeping_it) {
  auto wish = request();
  wish.ignore_end = true;  // applies only to the model's own end token
  wish.stop_tokens = {tokenizer()->encode("b").front()};
  auto log = make(wish);
  EXPECT_EQ(say(log, "aab"), std::pair(std::string("aa"), std::optional(finish_reason::stop)));
  wish.stop_tokens = {static_cast<token>(tokenizer()->size())};
  EXPECT_EQ(token_log::make(wish, tokenizer()).error().code, errc::invalid_argument);
  wish.stop_tokens = {};
  wish.sampling.allowed = {-1};
  EXPECT_EQ(token_log::make(wish, tokenizer()).error().code, errc::invalid_argument);
}

TEST(token_log, ends_before_a_line_that_is_indented_by_too_little) {
  auto wish = request();
  wish.indent_min = 2;
  auto log = make(wish);
  EXPECT_EQ(say(log, "a\n  b\n\n\t\tc\n d\n  e"),
            std::pair(std::string("a\n  b\n\n\t\tc\n "), std::optional(finish_reason::length)));
  wish.stops = {"dd"};  // "d" is withheld and must not appear at the end
  log = make(wish);
  EXPECT_EQ(say(log, "a\ndx"), std::pair(std::string("a\n"), std::optional(finish_reason::length)));
}

TEST(token_log, names_the_stop_string_that_ended_it) {
  auto wish = request();
  wish.stops = {"x", "b\n"};
  auto log = make(wish);
  EXPECT_EQ(log.stop_text(), "");
  (void)say(log, "ab\nc");
  EXPECT_EQ(log.stop_text(), "b\n");
}

TEST(token_log, gives_what_it_holds_back_when_it_is_cut) {
  auto wish = request();
  wish.stops = {"bc"};
  auto log = make(wish);
  EXPECT_EQ(say(log, "ab").first, "a");
  const auto end = log.cut();
  EXPECT_EQ(end.text, "b");
  EXPECT_EQ(end.finished, finish_reason::length);
}

TEST(token_log, says_that_a_prompt_is_too_long_as_clients_look_for_it) {
  auto wish = request();
  wish.prompt.assign(200, 1);
  EXPECT_EQ(token_log::make(wish, tokenizer())
                .error()
                .context.find("This model's maximum context length is 200 tokens. However, your prompt has 200 tokens"),
            0u);
}

TEST(token_log, ends_at_max_tokens_or_the_context_whichever_is_first) {
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

TEST(token_log, cuts_at_a_stop_string_however_tokens_cut_it) {
  auto wish = request();
  wish.stops = {"END"};
  auto g = make(wish);
  EXPECT_EQ(say(g, "some texEt EN, then END and more"),
            (std::pair{std::string("some texEt EN, then "), std::optional(finish_reason::stop)}));
}

TEST(token_log, gives_text_held_for_a_stop_string_when_the_end_comes) {
  auto wish = request();
  wish.stops = {"END"};
  wish.tokens_max = static_cast<std::uint32_t>(tokenizer()->encode("ab EN").size());
  auto g = make(wish);
  EXPECT_EQ(say(g, "ab EN"), (std::pair{std::string("ab EN"), std::optional(finish_reason::length)}));
}

TEST(token_log, passes_characters_on_whole) {
  auto wish = request();
  auto g = make(wish);
  const auto bytes = tokenizer()->encode("\xc3\xa4");
  ASSERT_EQ(bytes.size(), 2u);
  EXPECT_EQ(g.commit(std::vector{bytes[0]}).text, "");
  EXPECT_EQ(g.commit(std::vector{bytes[1]}).text, "\xc3\xa4");
}

generation_spec ask(std::vector<token> prompt, std::uint32_t tokens_max) {
  auto g = request();
  g.prompt = std::move(prompt);
  g.tokens_max = tokens_max;
  return g;
}

TEST(token_log, guesses_the_text_that_the_client_has_until_it_is_another) {
  auto g = request();
  g.known_text = "x = 1\ny = 2\n";
  auto log = make(g);
  const auto draft = log.known_draft();
  EXPECT_EQ(*tokenizer()->decode(draft), g.known_text);
  // The log uses other tokens than the text, so the continuation is found by bytes.
  for (const char c : std::string("x = ")) say(log, std::string(1, c));
  EXPECT_EQ(*tokenizer()->decode(log.known_draft()), "1\ny = 2\n");
  say(log, "1\n");
  EXPECT_EQ(*tokenizer()->decode(log.known_draft()), "y = 2\n");
  say(log, "z");
  EXPECT_TRUE(log.known_draft().empty());

  auto through = make(g);
  say(through, "x = 1\ny = 2\n");
  EXPECT_TRUE(through.known_draft().empty()) << "the whole text is there";
  say(through, "more");
  EXPECT_TRUE(through.known_draft().empty());
}

TEST(token_log, guesses_no_more_than_has_room) {
  auto g = request();
  g.context_max = 20;
  for (int i = 0; i < 3000; ++i) g.known_text += "word ";
  EXPECT_LT(make(g).known_draft().size(), 17u) << "prompt and draft leave space for one token";
  g.context_max = 100'000;
  g.tokens_max = 100'000;
  const auto draft = make(g).known_draft();
  EXPECT_GT(draft.size(), 50u);
  EXPECT_TRUE(g.known_text.starts_with(*tokenizer()->decode(draft))) << "no token from the cut position";
}

TEST(token_log, a_full_window_loses_its_oldest_tokens_behind_the_kept_ones) {
  auto request = ask({'a', 'b', 'c', 'd'}, 50);
  request.context_max = 100;
  request.eviction = {.policy = kv::eviction_policy::lazy, .n_keep = 2, .n_discard = 5, .n_ctx = 10};
  auto g = *token_log::make(request, tokenizer());
  EXPECT_EQ(g.tokens_max(), 10u);
  EXPECT_EQ(g.round_room(), 6u);
  EXPECT_FALSE(g.make_room());
  EXPECT_FALSE(g.commit(std::vector<token>{'1', '2', '3', '4', '5', '6'}).finished);
  EXPECT_EQ(g.round_room(), 0u);
  const auto gone = g.make_room();
  ASSERT_TRUE(gone);
  EXPECT_EQ(gone->at, 2u);
  EXPECT_EQ(gone->count, 5u);
  EXPECT_EQ(std::vector<token>(g.log().begin(), g.log().end()), (std::vector<token>{'a', 'b', '4', '5', '6'}));
  EXPECT_EQ(g.prompt_count(), 2u);
  EXPECT_EQ(g.evicted_count(), 5u);
  EXPECT_EQ(g.output_count(), 6u);
  EXPECT_EQ(g.room(), 44u);
  EXPECT_EQ(g.round_room(), 5u);
  EXPECT_EQ(g.usable(std::vector<token>(9, 'x')).size(), 4u);
  // max_tokens counts all generated tokens, not those that are left in the log.
  std::size_t said = 6;
  for (;; ++said) {
    const auto step = g.commit(std::vector<token>{'x'});
    if (step.finished) {
      EXPECT_EQ(*step.finished, finish_reason::length);
      break;
    }
    g.make_room();
    ASSERT_LT(g.log_count(), 10u);
  }
  EXPECT_EQ(said + 1, 50u);
}

TEST(token_log, cuts_a_window_at_a_line_where_one_is_near) {
  auto request = ask({'a', 'b'}, 100);
  request.eviction = {.policy = kv::eviction_policy::reevaluate, .n_ctx = 22};
  auto g = *token_log::make(request, tokenizer());
  g.commit(std::vector<token>(11, 'x'));  // 10 is half of the tokens that need not be kept
  g.commit(std::vector<token>{'\n'});
  g.commit(std::vector<token>(8, 'y'));
  ASSERT_EQ(g.log_count(), 22u);
  EXPECT_EQ(g.make_room()->count, 12u);
  EXPECT_EQ(g.log()[2], 'y');
  EXPECT_EQ(g.prompt_count(), 2u);
}

/// A frame of two tokens, two turns of three, the last message and the beginning of the answer.
generation_spec conversation(std::uint32_t n_ctx) {
  auto request = ask({'<', '<', 'a', 'a', 'a', 'b', 'b', 'b', 'c', '>'}, 50);
  request.turns = {{2, 5}, {5, 8}};
  request.eviction = {.policy = kv::eviction_policy::lazy, .n_discard = 2, .n_ctx = n_ctx};
  return request;
}
std::string log_of(const token_log& g) { return {g.log().begin(), g.log().end()}; }

TEST(token_log, a_conversation_loses_whole_turns_and_then_what_was_said) {
  auto g = *token_log::make(conversation(12), tokenizer());
  EXPECT_EQ(log_of(g), "<<aaabbbc>");
  g.commit(std::vector<token>{'1', '2'});
  auto gone = g.make_room();
  ASSERT_TRUE(gone);
  EXPECT_EQ(gone->at, 2u);
  EXPECT_EQ(gone->count, 3u);
  EXPECT_EQ(log_of(g), "<<bbbc>12");
  EXPECT_EQ(g.prompt_count(), 7u);
  g.commit(std::vector<token>{'3', '4', '5'});
  g.make_room();
  EXPECT_EQ(log_of(g), "<<c>12345");
  EXPECT_EQ(g.prompt_count(), 4u);
  g.commit(std::vector<token>{'6', '7', '8'});
  gone = g.make_room();
  EXPECT_EQ(gone->at, 4u);
  EXPECT_EQ(log_of(g), "<<c>345678");
  EXPECT_EQ(g.prompt_count(), 4u);
  EXPECT_EQ(g.evicted_count(), 8u);
}

TEST(token_log, of_a_conversation_only_turns_behind_the_kept_tokens_go) {
  auto request = conversation(12);
  request.eviction.n_keep = 3;
  auto g = *token_log::make(request, tokenizer());
  g.commit(std::vector<token>{'1', '2'});
  g.make_room();
  EXPECT_EQ(log_of(g), "<<aaac>12");
  g.commit(std::vector<token>{'3', '4', '5'});
  g.make_room();
  EXPECT_EQ(log_of(g), "<<aaac>345");
}

TEST(token_log, a_conversation_too_long_for_its_window_begins_without_its_oldest_turns) {
  const auto nine = *token_log::make(conversation(9), tokenizer());
  EXPECT_EQ(log_of(nine), "<<bbbc>");
  EXPECT_EQ(nine.evicted_count(), 3u);
  EXPECT_EQ(nine.prompt_count(), 7u);
  EXPECT_EQ(nine.room(), 50u);
  EXPECT_EQ(log_of(*token_log::make(conversation(8), tokenizer())), "<<c>");
  EXPECT_EQ(token_log::make(conversation(6), tokenizer()).error().code, errc::invalid_argument);
  const auto none = token_log::make(conversation(4), tokenizer());
  ASSERT_EQ(none.error().code, errc::context_length_exceeded);
  EXPECT_NE(none.error().context.find("your prompt has 4 tokens without its older turns"), std::string::npos);
}

TEST(token_log, refuses_windows_without_room) {
  const auto make = [](std::uint32_t n_ctx, std::optional<std::uint32_t> keep, std::optional<std::uint32_t> discard) {
    auto request = ask({'a', 'b', 'c'}, 10);
    request.eviction = {.policy = kv::eviction_policy::shift, .n_keep = keep, .n_discard = discard, .n_ctx = n_ctx};
    return token_log::make(request, tokenizer());
  };
  EXPECT_EQ(make(3, {}, {}).error().code, errc::context_length_exceeded);
  EXPECT_EQ(make(4, {}, {}).error().code, errc::invalid_argument);
  EXPECT_TRUE(make(5, {}, {}));
  EXPECT_EQ(make(10, 4, 6).error().code, errc::invalid_argument);
  EXPECT_TRUE(make(10, 4, 5));
  EXPECT_EQ(make(10, 4, 0).error().code, errc::invalid_argument);
  EXPECT_EQ(make(10, 0xffffffff, 0xffffffff).error().code, errc::invalid_argument);
}

}  // namespace
}  // namespace redline::actors
