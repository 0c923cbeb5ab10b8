#include "runtime/draft/source_chooser.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <vector>

namespace redline::draft {
namespace {

using offers = std::vector<draft_offer>;

constexpr draft_offer looked_up(std::uint32_t matched, std::uint32_t tokens = 80) {
  return {source::lookup, matched, tokens};
}
constexpr draft_offer predicted(std::uint32_t matched, std::uint32_t tokens = 80) {
  return {source::prediction, matched, tokens};
}
constexpr draft_offer modelled(std::uint32_t tokens = 324) { return {source::model, 0, tokens}; }

/// Takes the offers; of the chosen one, `accepted` tokens are accepted.
std::optional<source> play(source_chooser& c, const offers& all, std::uint32_t accepted,
                           const draft_prices& prices = {}) {
  const auto chosen = c.choose(all, prices);
  if (!chosen) return std::nullopt;
  for (const auto& offer : all) {
    if (offer.from != chosen->from) continue;
    c.learn(offer, {.drafted = chosen->tokens,
                    .accepted = std::min(accepted, chosen->tokens),
                    .model_passes = offer.from == source::model ? 4.0 : 0.0});
  }
  return chosen->from;
}

TEST(source_chooser, expects_at_first_that_the_longer_match_is_right) {
  struct row {
    const char* name;
    offers all;
    std::optional<source> wanted;
  };
  const row table[] = {
      {"nothing", {}, std::nullopt},
      {"an empty offer", {predicted(9, 0)}, std::nullopt},
      {"a guess is worth a try", {predicted(0)}, source::prediction},
      {"as long: the prediction", {predicted(5), looked_up(5)}, source::prediction},
      {"longer", {predicted(2), looked_up(5)}, source::lookup},
      {"a long match before the model", {looked_up(8), modelled()}, source::lookup},
      {"the model before a single token", {predicted(0), looked_up(1), modelled()}, source::model},
      {"the model before a guess", {predicted(0), modelled()}, source::model},
      {"a prediction that agrees before the model", {predicted(1), modelled()}, source::prediction},
      {"the model alone", {modelled()}, source::model},
  };
  for (const row& r : table) {
    const auto chosen = source_chooser().choose(r.all);
    EXPECT_EQ(chosen ? std::optional(chosen->from) : std::nullopt, r.wanted) << r.name;
  }
}

TEST(source_chooser, learns_which_source_pays) {
  source_chooser c;
  const offers both = {predicted(5), looked_up(5)};
  std::vector<source> taken;
  for (int i = 0; i < 40; ++i) {
    const auto chosen = c.choose(both);
    ASSERT_TRUE(chosen);
    taken.push_back(chosen->from);
    for (const auto& offer : both) {
      const draft_result result{.drafted = 20, .accepted = offer.from == source::lookup ? 20u : 1u};
      if (offer.from == chosen->from)
        c.learn(offer, result);
      else
        c.learn_untried(offer, result);
    }
  }
  EXPECT_EQ(taken.front(), source::prediction);
  EXPECT_EQ(std::count(taken.begin(), taken.begin() + 4, source::prediction), 1);
  EXPECT_EQ(std::count(taken.begin(), taken.end(), source::prediction), 1) << "one trial told";
}

TEST(source_chooser, tries_rarely_what_fails_and_comes_back_when_it_gives_something) {
  for (const draft_offer& offer : {looked_up(1), predicted(0), modelled()}) {
    source_chooser c;
    std::vector<int> tried;
    for (int i = 0; i < 200; ++i) {
      if (play(c, {offer}, 0)) tried.push_back(i);
    }
    ASSERT_GE(tried.size(), source_chooser::misses_max);
    EXPECT_EQ(tried[source_chooser::misses_max - 1], static_cast<int>(source_chooser::misses_max) - 1);
    EXPECT_LE(tried.size(), 6 + 5 + 200 / source_chooser::rest_max) << name_of(offer.from);
    EXPECT_GE(tried.size(), 6 + 200 / (source_chooser::rest_max + 1)) << name_of(offer.from);
    while (!play(c, {offer}, 30)) {
    }
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(play(c, {offer}, 30)) << i;
  }
}

TEST(source_chooser, comes_back_when_an_untried_draft_would_have_been_right) {
  source_chooser c;
  for (int i = 0; i < 100; ++i) play(c, {looked_up(1)}, 0);
  while (play(c, {looked_up(1)}, 0)) {
  }
  EXPECT_FALSE(c.choose(offers{looked_up(1)})) << "rests";
  c.learn_untried(looked_up(1), {.drafted = 16, .accepted = 5});
  EXPECT_TRUE(c.choose(offers{looked_up(1)}));
}

TEST(source_chooser, leaves_the_model_alone_while_it_costs_more_than_it_gives) {
  source_chooser c;
  const draft_prices dear{.model_pass = 1.0};
  EXPECT_TRUE(c.choose(offers{modelled()}, dear)) << "worth a try";
  int tried = 0;
  for (int i = 0; i < 300; ++i) tried += play(c, {modelled()}, 1, dear) ? 1 : 0;
  EXPECT_LT(tried, 80);
  EXPECT_GT(tried, 10);
  source_chooser of_cheap;
  for (int i = 0; i < 300; ++i) EXPECT_TRUE(play(of_cheap, {modelled()}, 1, {.model_pass = 0.01}));
}

// Whoever verifies cuts a draft to what pays: to offer a long one costs nothing, to offer none costs a chance.
TEST(source_chooser, neither_shortens_nor_leaves_out_what_is_free_where_prices_are_measured) {
  source_chooser c;
  const draft_prices dear{.row = 0.25, .measured = true};
  for (int i = 0; i < 200; ++i) {
    const auto chosen = c.choose(offers{looked_up(1)}, dear);
    ASSERT_TRUE(chosen) << i;
    EXPECT_EQ(chosen->tokens, 80U);
    c.learn(looked_up(1), {.drafted = 4, .accepted = 0});
  }
}

TEST(source_chooser, weighs_the_model_against_the_part_of_a_copy_that_pays) {
  // Of 80 tokens looked up half a dozen are right. Verified whole, at these prices, they would cost more than they
  // bring.
  const offers all = {looked_up(5), modelled()};
  source_chooser c;
  const draft_prices dear{.row = 0.25, .model_pass = 0.3, .measured = true};
  for (int i = 0; i < 60; ++i) {
    c.learn(looked_up(5), {.drafted = 80, .accepted = 6});
    c.learn(modelled(), {.drafted = 16, .accepted = 1, .model_passes = 4});
  }
  EXPECT_EQ(c.choose(all, dear)->from, source::lookup);
  for (int i = 0; i < 60; ++i) c.learn(modelled(), {.drafted = 40, .accepted = 40, .model_passes = 2});
  EXPECT_EQ(c.choose(all, dear)->from, source::model);
}

// A copy fails somewhere in the rows that are verified of it; the model ends its draft where it is unsure, and all is
// right.
TEST(source_chooser, counts_the_rows_that_were_verified) {
  const offers all = {looked_up(5), modelled()};
  const draft_prices dear{.row = 0.25, .model_pass = 0.1, .measured = true};
  const auto chosen_when_cut_at = [&](std::uint32_t rows) {
    source_chooser c;
    for (int i = 0; i < 60; ++i) {
      // Every other copy is right as far as it was cut.
      const bool is_right = i % 2 == 0;
      c.learn(looked_up(5), {.drafted = 80, .accepted = is_right ? rows : 8, .open = is_right});
      c.learn(modelled(), {.drafted = 11, .accepted = 10, .model_passes = 3});
    }
    return c.choose(all, dear)->from;
  };
  EXPECT_EQ(chosen_when_cut_at(20), source::model) << "14 of 20";
  EXPECT_EQ(chosen_when_cut_at(9), source::lookup) << "8.5 of 9, and no pass of the model";
}

TEST(source_chooser, goes_back_to_the_model_in_time) {
  source_chooser c;
  const offers all = {looked_up(1), modelled()};
  const auto tries_in = [&](int rounds, std::uint32_t model_accepts) {
    int tries = 0;
    for (int i = 0; i < rounds; ++i) {
      const auto chosen = c.choose(all);
      const bool is_model = chosen->from == source::model;
      tries += is_model ? 1 : 0;
      c.learn(
          all[is_model ? 1 : 0],
          {.drafted = chosen->tokens, .accepted = is_model ? model_accepts : 1, .model_passes = is_model ? 4.0 : 0.0});
    }
    return tries;
  };
  EXPECT_LT(tries_in(60, 0), 20);
  const int rare = tries_in(500, 0);
  EXPECT_GT(rare, 5);
  EXPECT_LT(rare, 60);
  EXPECT_GT(tries_in(500, 12), 400);
}

// Rounds of `count` short sessions, one after another, in which the model was tried.
int tries_of_sessions(const std::shared_ptr<source_chooser>& typical, int count, std::uint32_t model_accepts) {
  int tries = 0;
  for (int i = 0; i < count; ++i) {
    source_chooser c(typical);
    for (int round = 0; round < 10; ++round) {
      const auto chosen = c.choose(std::vector{looked_up(1), modelled()});
      const bool is_model = chosen->from == source::model;
      tries += is_model ? 1 : 0;
      c.learn(
          is_model ? modelled() : looked_up(1),
          {.drafted = chosen->tokens, .accepted = is_model ? model_accepts : 1, .model_passes = is_model ? 4.0 : 0.0});
    }
  }
  return tries;
}

TEST(source_chooser, begins_with_what_earlier_sessions_saw) {
  EXPECT_GT(tries_of_sessions(nullptr, 50, 0), 50) << "each tries for itself";
  const auto typical = std::make_shared<source_chooser>();
  EXPECT_LT(tries_of_sessions(typical, 50, 0), 15);
  EXPECT_GT(tries_of_sessions(typical, 1000, 12), 5000) << "tried again in time, and believed when it is right";
  EXPECT_GT(tries_of_sessions(typical, 10, 12), 90);

  source_chooser other(typical);
  for (int i = 0; i < 12; ++i) play(other, {looked_up(1), modelled()}, 0);
  EXPECT_EQ(other.choose(std::vector{looked_up(1), modelled()})->from, source::lookup) << "its own failures count more";
}

TEST(source_chooser, shares_what_the_model_reads_at_first_by_the_drafts_that_the_answer_will_take) {
  const auto typical = std::make_shared<source_chooser>();
  const offers all = {looked_up(1), modelled()};
  const auto chosen_for = [&](double tokens_to_come) {
    return source_chooser(typical).choose(all, {.model_first = 40, .tokens_to_come = tokens_to_come})->from;
  };
  EXPECT_EQ(chosen_for(128), source::lookup);
  EXPECT_EQ(chosen_for(8000), source::model);
  // Where copies give nearly all, few drafts of the model are left to share it.
  for (int i = 0; i < 2000; ++i) typical->learn(looked_up(9), {.drafted = 80, .accepted = 80});
  EXPECT_EQ(chosen_for(8000), source::lookup);
}

// Rounds of copies of one token until the model drafts.
int rounds_before_model(source_chooser& c, const draft_prices& prices) {
  for (int i = 0; i < 1000; ++i) {
    if (c.choose(std::vector{looked_up(1), modelled()}, prices)->from == source::model) return i;
    c.learn(looked_up(1), {.drafted = 80, .accepted = 1});
    c.learn_ready({.tokens = 2, .passes = 1, .rows = 2});
  }
  return 1000;
}

TEST(source_chooser, lets_the_model_catch_up_when_rounds_without_it_have_lost_as_much) {
  const auto waits_for = [](double catch_up) {
    source_chooser c;
    return rounds_before_model(c, {.model_catch_up = catch_up, .measured = true});
  };
  EXPECT_EQ(waits_for(0), 0);
  EXPECT_GT(waits_for(5), 2);
  EXPECT_GT(waits_for(20), 2 * waits_for(5));
  EXPECT_LT(waits_for(20), 100);

  source_chooser c;
  const int once = rounds_before_model(c, {.model_catch_up = 5, .measured = true});
  c.learn(modelled(), {.drafted = 6, .accepted = 6, .model_passes = 2});
  EXPECT_GE(rounds_before_model(c, {.model_catch_up = 5, .measured = true}), once / 2) << "what was lost is paid back";
}

TEST(source_chooser, counts_a_choice_that_nothing_came_of_once) {
  source_chooser asked_once;
  source_chooser asked_often;
  const offers all = {looked_up(1), modelled()};
  for (source_chooser* c : {&asked_once, &asked_often}) {
    for (int i = 0; i < 30; ++i) {
      for (int again = 0; again < (c == &asked_often ? 50 : 1); ++again) (void)c->choose(all, {.measured = true});
      c->learn_ready({.tokens = 2, .passes = 1, .rows = 2});
    }
    c->learn(modelled(), {.drafted = 6, .accepted = 6, .model_passes = 2});
  }
  const draft_prices dear{.model_catch_up = 10, .measured = true};
  EXPECT_EQ(rounds_before_model(asked_once, dear), rounds_before_model(asked_often, dear));
}

// Where the answer leaves the old text a copy is worth nothing; whether it comes back to it is what counts.
TEST(source_chooser, leaves_to_copies_what_they_bring_a_token_later) {
  const draft_prices prices{.row = 0.05, .model_pass = 0.4, .measured = true};
  const auto models_drafts = [&](bool comes_back) {
    source_chooser c;
    int drafts = 0;
    for (int i = 0; i < 100; ++i) {
      const auto chosen = c.choose(std::vector{looked_up(1), modelled()}, prices);
      if (chosen->from == source::model) {
        ++drafts;
        c.learn(modelled(), {.drafted = 16, .accepted = 15, .model_passes = 4});
        c.learn_ready({.tokens = 16, .passes = comes_back ? 2.0 : 13, .rows = 16});
        continue;
      }
      c.learn(looked_up(1), {.drafted = 2, .accepted = 0});
      c.learn_ready({.tokens = 1, .passes = 1, .rows = 2});
      if (!comes_back) continue;
      (void)c.choose(std::vector{looked_up(9)}, prices);
      c.learn(looked_up(9), {.drafted = 40, .accepted = 40});
      c.learn_ready({.tokens = 41, .passes = 1, .rows = 40});
    }
    return drafts;
  };
  EXPECT_LT(models_drafts(true), 20);
  EXPECT_GT(models_drafts(false), 80);
}

TEST(source_chooser, counts_a_pass_that_many_sessions_share_as_a_part_of_one) {
  const auto chosen_with = [](double pass) {
    source_chooser c;
    for (int i = 0; i < 60; ++i) c.learn(modelled(), {.drafted = 8, .accepted = 7, .model_passes = 4});
    for (int i = 0; i < 60; ++i) c.learn(looked_up(1), {.drafted = 4, .accepted = 1});
    const draft_prices prices{.pass = pass, .row = 0.05, .model_pass = 0.2, .measured = true};
    return c.choose(std::vector{looked_up(1), modelled()}, prices)->from;
  };
  EXPECT_EQ(chosen_with(1), source::model);
  EXPECT_EQ(chosen_with(0.1), source::lookup) << "many rounds cost little";
}

TEST(source_chooser, counts_what_a_round_takes_beside_its_pass) {
  const auto chosen_with = [](double round) {
    source_chooser c;
    for (int i = 0; i < 60; ++i) c.learn(modelled(), {.drafted = 4, .accepted = 3, .model_passes = 9});
    for (int i = 0; i < 60; ++i) c.learn(looked_up(1), {.drafted = 4, .accepted = 1});
    return c.choose(std::vector{looked_up(1), modelled()}, {.round = round, .model_pass = 0.2, .measured = true})->from;
  };
  EXPECT_EQ(chosen_with(0), source::lookup);
  EXPECT_EQ(chosen_with(2), source::model) << "fewer rounds";
}

TEST(source_chooser, shortens_drafts_that_fail_and_lengthens_those_that_are_taken_whole) {
  for (const draft_offer& offer : {looked_up(9, 300), predicted(2, 300), modelled(300)}) {
    source_chooser c;
    const std::uint32_t at_first = c.length(offer);
    c.learn(offer, {.drafted = at_first, .accepted = 0});
    const std::uint32_t shorter = c.length(offer);
    EXPECT_LT(shorter, at_first);
    for (int i = 0; i < 10; ++i) c.learn(offer, {.drafted = 16, .accepted = 0});
    EXPECT_EQ(c.length(offer), source_chooser::length_min);
    c.learn(offer, {.drafted = 16, .accepted = 16});
    EXPECT_EQ(c.length(offer), 4 * source_chooser::length_min);
    for (int i = 0; i < 5; ++i) c.learn(offer, {.drafted = c.length(offer), .accepted = c.length(offer)});
    EXPECT_EQ(c.length(offer), 300u) << "no longer than what is offered";
  }
  // Each by itself, and apart by what speaks for it.
  source_chooser c;
  for (int i = 0; i < 10; ++i) c.learn(looked_up(1), {.drafted = 16, .accepted = 0});
  EXPECT_EQ(c.length(looked_up(1)), source_chooser::length_min);
  EXPECT_EQ(c.length(looked_up(9)), 80u);
  EXPECT_EQ(c.length(predicted(1)), 80u);
}

TEST(source_chooser, takes_what_it_saw_the_beginning_of_for_no_failure) {
  source_chooser c;
  const auto before = c.length(looked_up(9));
  for (int i = 0; i < 50; ++i) c.learn(looked_up(9), {.drafted = 80, .accepted = 2, .open = true});
  EXPECT_EQ(c.length(looked_up(9)), before);
  // Not outweighed by a source that gives less than it was expected to.
  for (int i = 0; i < 50; ++i) c.learn(predicted(9), {.drafted = 80, .accepted = 8});
  EXPECT_EQ(c.choose(offers{predicted(9), looked_up(9)})->from, source::lookup);
}

TEST(source_chooser, decides_the_same_from_the_same_history) {
  std::mt19937 random(11);
  source_chooser a, b;
  for (int i = 0; i < 2000; ++i) {
    const offers all = {predicted(random() % 12, random() % 90), looked_up(random() % 12, random() % 90), modelled()};
    const std::uint32_t accepted = random() % 3 == 0 ? random() % 90 : 0;
    ASSERT_EQ(play(a, all, accepted), play(b, all, accepted));
    for (const auto& offer : all) ASSERT_LE(a.length(offer), offer.tokens);
  }
}

TEST(source_rivalry, believes_who_was_right_where_they_disagreed) {
  const std::vector<token> predicted = {1, 2, 3, 4};
  const std::vector<token> looked_up = {1, 2, 7, 4};
  source_rivalry r;
  EXPECT_TRUE(r.trusts_prediction()) << "it was given for this answer";
  r.learn(predicted, looked_up, std::vector<token>{1, 2});
  r.learn(predicted, predicted, std::vector<token>{1, 9});
  r.learn(predicted, looked_up, std::vector<token>{5, 2, 7});
  r.learn(predicted, std::span(predicted).first(2), std::vector<token>{1, 2, 9});
  EXPECT_TRUE(r.trusts_prediction()) << "none of these tells one from the other";
  r.learn(predicted, looked_up, std::vector<token>{1, 2, 7});
  EXPECT_FALSE(r.trusts_prediction());
  for (int i = 0; i < 2; ++i) r.learn(predicted, looked_up, std::vector<token>{1, 2, 3});
  EXPECT_TRUE(r.trusts_prediction());
}

}  // namespace
}  // namespace redline::draft
