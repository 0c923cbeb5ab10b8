// Log-probabilities of a prompt's tokens equal those of one pass over the whole prompt, however it is cut into parts,
// even while other sequences take pages and when a batch is lost.

#include <gtest/gtest.h>

#include <map>

#include "actors/serving/session.hpp"
#include "runtime/base/log.hpp"
#include "tests/support/by_hand.hpp"
#include "tests/support/serving_world.hpp"

namespace redline::actors {
namespace {

std::shared_ptr<const text::tokenizer> tokenizer() {
  static const auto t = *text::tokenizer::from_file(*test::make_tiny_model().file());
  return t;
}

std::vector<token> prompt_of(std::size_t count, std::uint64_t seed) {
  test::tiny_random random(seed);
  std::vector<token> out(count);
  for (auto& t : out) t = static_cast<token>(random.bits() % test::tiny_model::vocabulary);
  return out;
}

/// The log-probabilities of a single pass for the tokens from the second on, row by row.
std::vector<sampling::emitted_logprob> scores_by_hand(const std::vector<token>& prompt, std::uint32_t top) {
  const auto model = test::shared_weights().make(40);
  std::vector<sampling::emitted_logprob> out;
  for (std::size_t i = 0; i + 1 < prompt.size(); ++i) {
    const kv::piece table{0, static_cast<std::uint32_t>(i + 1), 0};
    const model::run one{
        .tokens = std::span(prompt).subspan(i, 1), .first_position = static_cast<position>(i), .table = {&table, 1}};
    out.push_back(sampling::logprob_of(model->forward({&one, 1}), prompt[i + 1], top));
  }
  return out;
}

struct begin_answers {
  static constexpr actor::message_id id{0x0a51};
  static constexpr std::string_view name = "begin_answers";
  static constexpr auto fields(auto&) { return std::tie(); }
};

class listener final : public actor::actor_of<listener> {
 public:
  using accepts =
      actor::protocol<begin_answers, session_admitted, session_text, session_finished, actor::undeliverable>;
  struct notes {
    std::vector<generation_spec> asked;
    std::map<std::uint64_t, std::vector<sampling::emitted_logprob>> scores;
    std::map<std::uint64_t, std::vector<token>> tokens;
    std::map<std::uint64_t, session_finished> finished;
  };
  listener(actor::actor_context& context, notes& n) : actor_of(context), notes_(n) {}
  void on_start() { context().after(microseconds{1000}, begin_answers{}); }
  void on(const begin_answers&) {
    for (const auto& g : notes_.asked) {
      const session_partners partners{.manager = {test::manager_where}, .client = context().self()};
      context().spawn<session>("session", {64, 64}, *token_log::make(g, tokenizer()), partners);
    }
  }
  void on(const session_admitted&) {}
  void on(const session_text& m) {
    auto& scores = notes_.scores[m.session.value];
    EXPECT_TRUE(m.prompt_logprobs.empty() || notes_.tokens[m.session.value].empty()) << "the prompt comes first";
    scores.insert(scores.end(), m.prompt_logprobs.begin(), m.prompt_logprobs.end());
    auto& tokens = notes_.tokens[m.session.value];
    tokens.insert(tokens.end(), m.tokens.begin(), m.tokens.end());
  }
  void on(const session_finished& m) { notes_.finished[m.session.value] = m; }
  void on(const actor::undeliverable&) {}

 private:
  notes& notes_;
};

struct scored_prompts : listener::notes {
  scored_prompts(const scheduler_options& options, std::uint32_t pages) {
    configure_log(log_level::off, log_format::text);
    test::add_target(world, options, pages, [pages] { return test::shared_weights().make(pages); });
  }
  generation_spec& ask(std::uint64_t number, std::vector<token> prompt, std::optional<std::uint32_t> top) {
    generation_spec& g = asked.emplace_back();
    g.session = {number};
    g.tenant = {1};
    g.prompt = std::move(prompt);
    g.tokens_max = 2;
    g.context_max = 1024;
    g.ignore_end = true;
    g.draft.how = draft::method::regular;
    g.prompt_logprobs = top;
    return g;
  }
  bool run(const std::function<void()>& each_step = {}) {
    world.add_worker(1, 1).add<listener>(
        9, "listener", test::roomy, [this](actor::actor_context& c) { return std::make_unique<listener>(c, *this); });
    return world.run_until([&] { return finished.size() == asked.size(); }, microseconds{600'000'000}, each_step);
  }
  test::actor_world world{7};
};

scheduler_options how() {
  scheduler_options o;
  o.limits = {.running_max = 8, .waiting_max = 8, .tokens_max = 1024};
  o.budget.rows_max = 64;
  o.budget.prompt_chunk_rows_max = 48;
  return o;
}

TEST(prompt_scores, are_those_of_the_whole_prompt_whatever_its_length) {
  scored_prompts all(how(), 40);
  const std::vector<std::size_t> lengths{1, 2, 3, 48, 49, 257, 300, 600};
  for (std::size_t i = 0; i < lengths.size(); ++i) all.ask(i + 1, prompt_of(lengths[i], i), i % 3);
  ASSERT_TRUE(all.run());
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    SCOPED_TRACE(lengths[i]);
    EXPECT_EQ(all.finished[i + 1].reason, finish_reason::length);
    EXPECT_EQ(all.scores[i + 1], scores_by_hand(all.asked[i].prompt, i % 3));
    EXPECT_EQ(all.tokens[i + 1].size(), 2u);
    EXPECT_EQ(all.finished[i + 1].stats.completion_tokens, 2u);
  }
}

TEST(prompt_scores, do_not_change_the_answer_and_are_not_taken_from_a_cache) {
  scored_prompts plain(how(), 40), scored(how(), 40);
  const auto prompt = prompt_of(200, 3);
  plain.ask(1, prompt, std::nullopt);
  ASSERT_TRUE(plain.run());
  EXPECT_TRUE(plain.scores[1].empty());
  // The second one begins when the first has left its pages to the cache.
  scored.ask(1, prompt, 1);
  scored.ask(2, prompt, 1);
  scored.ask(3, prompt, std::nullopt);
  ASSERT_TRUE(scored.run());
  for (const std::uint64_t number : {1, 2, 3}) EXPECT_EQ(scored.tokens[number], plain.tokens[1]);
  EXPECT_EQ(scored.scores[1], scores_by_hand(prompt, 1));
  EXPECT_EQ(scored.scores[2], scored.scores[1]);
  EXPECT_EQ(scored.finished[1].stats.cached_tokens, 0u);
  EXPECT_EQ(scored.finished[2].stats.cached_tokens, 0u);
}

TEST(prompt_scores, get_on_with_few_logits_few_pages_and_a_target_that_is_lost) {
  auto options = how();
  options.budget.logits_max = 7;
  scored_prompts all(options, 12);  // 384 tokens for 3 sequences of 200 each
  for (std::uint64_t i = 1; i <= 3; ++i) all.ask(i, prompt_of(200, i), 1);
  std::size_t steps = 0;
  ASSERT_TRUE(all.run([&] {
    if (++steps % 400 == 0 && steps <= 2000) all.world.restart(test::target_where);
  }));
  for (std::uint64_t i = 1; i <= 3; ++i) {
    EXPECT_EQ(all.finished[i].reason, finish_reason::length);
    EXPECT_EQ(all.scores[i], scores_by_hand(all.asked[i - 1].prompt, 1));
  }
  EXPECT_GT(steps, 400u);
}

TEST(prompt_scores, are_not_given_of_a_window_that_moves) {
  scored_prompts all(how(), 40);
  auto& g = all.ask(1, prompt_of(20, 1), 1);
  g.eviction.policy = kv::eviction_policy::shift;
  const auto refused = token_log::make(g, tokenizer());
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().context.find("expected no eviction"), std::string::npos);
}

}  // namespace
}  // namespace redline::actors
