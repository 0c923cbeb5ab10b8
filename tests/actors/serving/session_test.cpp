#include "actors/serving/session.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "runtime/base/log.hpp"
#include "runtime/grammar/syntax/steps.hpp"
#include "tests/support/serving_world.hpp"
#include "tests/support/tiny_model.hpp"

namespace redline::actors {
namespace {

std::shared_ptr<const text::tokenizer> tokenizer() {
  static const auto t = *text::tokenizer::from_file(*test::make_tiny_model().file());
  return t;
}

/// An answer of `letters` letters, all of which the grammar decides.
generation_spec decided_answer(std::uint64_t number, std::size_t letters) {
  static const auto trie = *grammar::token_trie::make(tokenizer());
  generation_spec g;
  g.session = {number};
  g.tenant = {1};
  g.prompt = {1, 2, 3};
  g.tokens_max = 100'000;
  g.context_max = 200'000;
  g.rules =
      *make_text_rules(trie, {.text = "{\"const\":\"" + std::string(letters, static_cast<char>('a' + number)) + "\"}"});
  return g;
}

struct begin_answers {
  static constexpr actor::message_id id{0x0a41};
  static constexpr std::string_view name = "begin_answers";
  static constexpr auto fields(auto&) { return std::tie(); }
};

/// Opens sessions and keeps what they report.
class listener final : public actor::actor_of<listener> {
 public:
  using accepts =
      actor::protocol<begin_answers, session_admitted, session_text, session_finished, actor::undeliverable>;
  struct notes {
    std::vector<generation_spec> asked;
    std::vector<std::uint64_t> order;  // the sessions whose text came
    std::vector<std::uint64_t> admitted;
    std::map<std::uint64_t, std::string> text;
    std::map<token_origin, traced_run> came;  // of all answers with a trace
    std::map<std::uint64_t, session_finished> finished;
    std::size_t tokens_max = 0;  // the most tokens in one message
    std::vector<actor::address> sessions;
  };
  listener(actor::actor_context& context, notes& n) : actor_of(context), notes_(n) {}
  void on_start() { context().after(microseconds{1000}, begin_answers{}); }
  void on(const begin_answers&) {
    for (const auto& g : notes_.asked) {
      const session_partners partners{.manager = {test::manager_where}, .client = context().self()};
      const auto who = context().spawn<session>("session", {64, 64}, *token_log::make(g, tokenizer()), partners);
      notes_.sessions.push_back(who.where);
    }
  }
  void on(const session_admitted& m) { notes_.admitted.push_back(m.session.value); }
  void on(const session_text& m) {
    notes_.order.push_back(m.session.value);
    notes_.text[m.session.value] += m.text;
    for (const auto& run : m.trace.value_or(step_trace{}).came) {
      notes_.came[run.from].tokens += run.tokens;
      notes_.came[run.from].bytes += run.bytes;
    }
    notes_.tokens_max = std::max(notes_.tokens_max, m.tokens.size());
  }
  void on(const session_finished& m) { notes_.finished[m.session.value] = m; }
  void on(const actor::undeliverable&) {}

 private:
  notes& notes_;
};

struct answers : listener::notes {
  explicit answers(std::vector<generation_spec> wanted) {
    configure_log(log_level::off, log_format::text);
    asked = std::move(wanted);
    world.add_worker(1, 1).add<listener>(
        9, "listener", test::roomy, [this](actor::actor_context& c) { return std::make_unique<listener>(c, *this); });
    world.add_worker(2, 1);  // receives no requests
  }
  bool run_until_finished() {
    return world.run_until([&] { return finished.size() == asked.size(); }, microseconds{600'000'000});
  }
  test::actor_world world{7};
};

TEST(session, writes_a_long_decided_answer_in_parts_between_which_others_run) {
  answers all({decided_answer(1, 3000), decided_answer(2, 3000)});
  ASSERT_TRUE(all.run_until_finished());
  for (const std::uint64_t number : {1, 2}) {
    EXPECT_EQ(all.text[number], '"' + std::string(3000, static_cast<char>('a' + number)) + '"');
    EXPECT_EQ(all.finished[number].reason, finish_reason::stop);
    EXPECT_EQ(all.finished[number].stats.rounds, 0u);
  }
  EXPECT_LE(all.tokens_max, 8u);
  std::size_t in_a_row = 0, in_a_row_max = 0;
  const std::size_t both =
      std::min(std::count(all.order.begin(), all.order.end(), 1U), std::count(all.order.begin(), all.order.end(), 2U));
  for (std::size_t i = 1; i < both; ++i) {
    in_a_row = all.order[i] == all.order[i - 1] ? in_a_row + 1 : 0;
    in_a_row_max = std::max(in_a_row_max, in_a_row);
  }
  EXPECT_LE(in_a_row_max, 8u);
}

TEST(session, has_a_long_span_spelled_on_another_thread) {
  std::string lines;
  for (int i = 0; i < 999; ++i) lines += "a line of some text\n";
  static const auto trie = *grammar::token_trie::make(tokenizer());
  generation_spec g;
  g.session = {1};
  g.tenant = {1};
  g.prompt = {1, 2, 3};
  g.tokens_max = 100'000;
  g.context_max = 200'000;
  g.rules = *make_copy_rules(trie, {lines}, {.trust = copy_trust::forced});
  g.trace = true;
  answers all({g});
  std::size_t jobs = 0;
  all.world.on_wire = [&](actor::frame& f) {
    jobs += f.head.id == actor::job_done::id ? 1 : 0;
    return true;
  };
  ASSERT_TRUE(all.world.run_until([&] { return !all.sessions.empty(); }, microseconds{1'000'000}));
  std::uint64_t round = 0;
  for (const char choice : std::string_view("<c\"1-999</")) {
    if (choice == '9' || choice == '<') all.world.run_for(microseconds{1'000'000});
    all.world.send(all.sessions[0], verified{.sequence = {1}, .round = {++round}, .tokens = {choice}});
    all.world.run_for(microseconds{10'000});
  }
  ASSERT_TRUE(all.run_until_finished());
  EXPECT_EQ(all.text[1], lines);
  EXPECT_EQ(all.finished[1].reason, finish_reason::stop);
  EXPECT_EQ(jobs, 1u);
  EXPECT_EQ(all.came[token_origin::copy].bytes, lines.size());
  EXPECT_EQ(all.came[token_origin::model].bytes + all.came[token_origin::grammar].bytes, 0u)
      << "the program's own words are not text of the answer";
  EXPECT_EQ(all.came[token_origin::model].tokens, 10u);
}

TEST(session, traces_what_a_grammar_decided) {
  auto g = decided_answer(1, 500);
  g.trace = true;
  answers all({g});
  ASSERT_TRUE(all.run_until_finished());
  EXPECT_EQ(all.text[1], '"' + std::string(500, 'b') + '"');
  ASSERT_EQ(all.came.size(), 1u);
  EXPECT_EQ(all.came[token_origin::grammar].bytes, 502u);
}

TEST(session, goes_on_where_a_word_to_itself_is_lost) {
  answers all({decided_answer(1, 500)});
  std::size_t count = 0;
  all.world.on_wire = [&](actor::frame& f) { return f.head.id != session_step::id || ++count % 3 != 0; };
  ASSERT_TRUE(all.run_until_finished());
  EXPECT_EQ(all.text[1], '"' + std::string(500, 'b') + '"');
  EXPECT_GT(count, 10u);
}

TEST(session, stops_and_waits_in_the_middle_of_a_decided_answer) {
  answers all({decided_answer(1, 3000)});
  ASSERT_TRUE(all.world.run_until([&] { return all.text[1].size() > 500; }, microseconds{600'000'000}));
  all.world.send(all.sessions[0], pause_session{true});
  all.world.run_for(microseconds{1'000'000});
  const std::size_t paused_at = all.text[1].size();
  EXPECT_LT(paused_at, 2500u);
  all.world.run_for(microseconds{5'000'000});
  EXPECT_EQ(all.text[1].size(), paused_at);
  all.world.send(all.sessions[0], pause_session{false});
  ASSERT_TRUE(all.world.run_until([&] { return all.text[1].size() > paused_at; }, microseconds{600'000'000}));
  all.world.send(all.sessions[0], cancel_session{});
  all.world.run_for(microseconds{5'000'000});
  EXPECT_LT(all.text[1].size(), 3000u);
  EXPECT_TRUE(all.finished.empty());
}

}  // namespace
}  // namespace redline::actors
