#include "bench/studies/edits/draft_study.hpp"

#include <gtest/gtest.h>

#include <random>

namespace redline::studies {
namespace {

using draft::method;
using tokens = std::vector<token>;

constexpr token end_token = 1;
constexpr method fixed[] = {method::regular, method::lookup, method::prediction, method::assisted, method::blazedit};

/// A file of lines over a few hundred words, in which lines recur, and the same file after `changes` edits.
known_answer edit_of(std::uint32_t seed, int lines, int changes) {
  std::mt19937 random(seed);
  const auto draw = [&](std::uint32_t below) { return static_cast<token>(random() % below); };
  const auto line = [&] {
    tokens words(static_cast<std::size_t>(3 + draw(8)));
    for (token& t : words) t = 10 + (draw(3) == 0 ? draw(400) : draw(40));
    words.push_back(2);
    return words;
  };
  std::vector<tokens> file;
  for (int i = 0; i < lines; ++i)
    file.push_back(i > 4 && draw(5) == 0 ? file[static_cast<std::size_t>(draw(5))] : line());
  std::vector<tokens> after = file;
  for (int i = 0; i < changes; ++i) {
    const auto at = after.begin() + draw(static_cast<std::uint32_t>(after.size()));
    switch (draw(3)) {
      case 0:
        (*at)[0] = 500 + draw(100);
        break;
      case 1:
        after.insert(at, line());
        break;
      default:
        after.erase(at);
    }
  }
  known_answer known;
  known.prompt = {5, 6, 7};
  for (const tokens& one : file) known.prediction.insert(known.prediction.end(), one.begin(), one.end());
  known.prompt.insert(known.prompt.end(), known.prediction.begin(), known.prediction.end());
  known.prompt.push_back(3);
  for (const tokens& one : after) known.answer.insert(known.answer.end(), one.begin(), one.end());
  known.answer.push_back(end_token);
  return known;
}

std::vector<known_answer> some_edits(bool is_predicted) {
  std::vector<known_answer> all;
  for (std::uint32_t seed = 1; seed <= 8; ++seed) {
    all.push_back(edit_of(seed, 20 + static_cast<int>(seed) * 5, 2 + static_cast<int>(seed)));
    if (!is_predicted) all.back().prediction.clear();
  }
  return all;
}

replay_cost replay_all(const std::vector<known_answer>& all, const draft_replay_study::setting& s) {
  draft_replay_study study(s);
  replay_cost sum;
  for (const known_answer& known : all) sum += study.replay(known);
  return sum;
}

TEST(draft_study, gives_the_same_each_time) {
  const auto all = some_edits(true);
  for (const method how : {method::automatic, method::assisted, method::prediction}) {
    const auto once = replay_all(all, {.how = how}), again = replay_all(all, {.how = how});
    EXPECT_EQ(once.us, again.us);
    EXPECT_EQ(once.rounds, again.rounds);
    EXPECT_EQ(once.rows, again.rows);
    EXPECT_EQ(once.model_passes, again.model_passes);
    EXPECT_EQ(once.model_rows, again.model_rows);
    EXPECT_EQ(once.accepted, again.accepted);
  }
}

TEST(draft_study, regular_takes_a_round_for_each_token) {
  const auto known = edit_of(1, 20, 3);
  const pass_costs costs;
  const auto cost = draft_replay_study({.how = method::regular}).replay(known);
  EXPECT_EQ(cost.rounds, known.answer.size());
  EXPECT_EQ(cost.rows, known.answer.size());
  EXPECT_EQ(cost.model_passes, 0u);
  EXPECT_EQ(cost.model_rows, 0u);
  EXPECT_DOUBLE_EQ(cost.us, static_cast<double>(known.answer.size()) * (costs.target_us + costs.overhead_us));
  for (const auto count : cost.accepted) EXPECT_EQ(count, 0u);
}

TEST(draft_study, free_rows_cost_nothing_and_the_others_what_they_cost) {
  const auto known = edit_of(3, 40, 4);
  const auto cost_with = [&](double free_rows) {
    return draft_replay_study({.how = method::lookup, .costs = {.free_rows = free_rows}}).replay(known);
  };
  const pass_costs costs;
  const double round_us = costs.target_us + costs.overhead_us;
  const auto none = cost_with(0), all = cost_with(1000);
  EXPECT_DOUBLE_EQ(none.us, static_cast<double>(none.rounds) * round_us +
                                static_cast<double>(none.rows - none.rounds) * costs.row_us);
  EXPECT_DOUBLE_EQ(all.us, static_cast<double>(all.rounds) * round_us);
  EXPECT_GT(all.rows, all.rounds);
}

TEST(draft_study, every_token_is_a_rounds_own_or_was_accepted) {
  for (const known_answer& known : some_edits(true)) {
    for (const method how :
         {method::lookup, method::prediction, method::assisted, method::blazedit, method::automatic}) {
      const auto cost = draft_replay_study({.how = how}).replay(known);
      std::uint64_t accepted = 0;
      for (const auto count : cost.accepted) accepted += count;
      EXPECT_EQ(cost.rounds + accepted, known.answer.size()) << draft::name_of(how);
      EXPECT_GE(cost.rows, known.answer.size()) << "every accepted token was verified";
      EXPECT_LT(cost.rounds, known.answer.size()) << draft::name_of(how);
      if (!draft::asks_model(how)) {
        EXPECT_EQ(cost.model_passes, 0u) << draft::name_of(how);
      }
    }
  }
}

TEST(draft_study, drafts_come_from_what_the_method_reads) {
  const auto known = edit_of(2, 40, 4);
  const auto accepted = [&](method how, draft::source from) {
    return draft_replay_study({.how = how}).replay(known).accepted[static_cast<std::size_t>(from)];
  };
  EXPECT_GT(accepted(method::lookup, draft::source::lookup), 0u);
  EXPECT_EQ(accepted(method::lookup, draft::source::prediction), 0u);
  EXPECT_GT(accepted(method::prediction, draft::source::prediction), 0u);
  EXPECT_EQ(accepted(method::prediction, draft::source::model), 0u);
  EXPECT_GT(accepted(method::assisted, draft::source::model), 0u);
}

TEST(draft_study, a_wrong_expectation_costs_a_round_or_two) {
  auto known = edit_of(2, 40, 4);
  known.predicted_by = draft::source::format;
  known.prediction.clear();
  const auto without = draft_replay_study({.how = method::prediction}).replay(known);
  for (token t = 0; t < 2000; ++t) known.prediction.push_back(1'000'000 + t);
  const auto with = draft_replay_study({.how = method::prediction}).replay(known);
  EXPECT_EQ(with.accepted[static_cast<std::size_t>(draft::source::format)], 0u);
  EXPECT_LE(with.rounds, without.rounds + 2) << "a token at the same position is then contested for a while";
  EXPECT_LE(with.rows, without.rows + 40) << "the first draft, and a few tokens until the expectation is given up";
}

TEST(draft_study, a_right_expectation_is_verified_from_the_first_token) {
  auto known = edit_of(2, 40, 4);
  known.predicted_by = draft::source::format;
  known.prediction = known.answer;
  const pass_costs cheap_rows{.row_us = 1};
  const auto cost = draft_replay_study({.how = method::prediction, .costs = cheap_rows}).replay(known);
  EXPECT_LE(cost.rounds, known.answer.size() / 80 + 2);
}

TEST(draft_study, a_better_model_takes_less_time) {
  const auto all = some_edits(false);
  double before = 1e18;
  for (const double right : {0.2, 0.6, 0.95}) {
    const double us = replay_all(all, {.how = method::assisted, .costs = {}, .model_right = right}).us;
    EXPECT_LT(us, before) << right;
    before = us;
  }
}

TEST(draft_study, lives_with_answers_that_are_short_or_new) {
  for (const method how :
       {method::regular, method::lookup, method::prediction, method::assisted, method::blazedit, method::automatic}) {
    draft_replay_study study({.how = how});
    for (const tokens& answer : {tokens{}, tokens{end_token}, tokens{8, end_token}, tokens{8, 9, 8, end_token}}) {
      const auto cost = study.replay({.prompt = {5, 6}, .prediction = {}, .answer = answer});
      EXPECT_LE(cost.rounds, answer.size()) << draft::name_of(how);
      EXPECT_EQ(cost.rounds == 0, answer.empty()) << draft::name_of(how);
    }
  }
}

TEST(draft_study, automatic_is_nearly_as_fast_as_the_best_fixed_method) {
  const pass_costs machines[] = {
      {.target_us = 170, .row_us = 65, .model_us = 70, .model_row_us = 17.5, .overhead_us = 150},
      {.target_us = 150, .row_us = 8, .model_us = 60, .model_row_us = 2, .overhead_us = 150},
      {.target_us = 2000, .row_us = 100, .model_us = 150, .model_row_us = 8, .overhead_us = 150},
      {.target_us = 7700, .row_us = 640, .model_us = 1100, .model_row_us = 100, .overhead_us = 150}};
  for (const bool is_predicted : {true, false}) {
    const auto all = some_edits(is_predicted);
    for (const pass_costs& costs : machines) {
      for (const double right : {0.0, 0.4, 0.8}) {
        double best = 1e18;
        std::string name;
        for (const method how : fixed) {
          const double us = replay_all(all, {.how = how, .costs = costs, .model_right = right}).us;
          if (us < best) name = draft::name_of(how);
          best = std::min(best, us);
        }
        const double us = replay_all(all, {.how = method::automatic, .costs = costs, .model_right = right}).us;
        EXPECT_GT(best / us, 0.88) << name << ", " << costs.target_us << " us a pass, right in " << right
                                   << (is_predicted ? ", with predictions" : "");
      }
    }
  }
}

}  // namespace
}  // namespace redline::studies
