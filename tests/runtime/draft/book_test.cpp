#include "runtime/draft/book.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "runtime/draft/lookup_source.hpp"
#include "runtime/draft/prediction_source.hpp"

namespace redline::draft {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using tokens = std::vector<token>;

constexpr round_costs known_costs{.round_us = 1000, .row_us = 20, .model_pass_us = 200, .model_row_us = 2};
constexpr std::uint32_t roomy = 100;

graded_draft draft_of(source from, std::uint8_t grade, const tokens& all) {
  graded_draft d;
  d.add(from, grade, all);
  return d;
}
const graded_draft nothing;

/// Proposes the draft that the test sets, or its rest after pending tokens with which it begins.
struct told_source final : draft_source {
  struct words {
    graded_draft says;
  };
  told_source(std::shared_ptr<words> said, standing s) : told(std::move(said)), stand(s) {}
  [[nodiscard]] standing stands() const override { return stand; }
  void append(std::span<const token>, bool) override {}
  void drop(std::uint32_t, std::uint32_t) override {}
  bool catch_up(std::uint32_t) override { return false; }
  [[nodiscard]] graded_draft look(std::span<const token> pending, std::uint32_t tokens_max) const override {
    const graded_draft& d = told->says;
    if (pending.size() >= d.tokens.size() || !std::equal(pending.begin(), pending.end(), d.tokens.begin())) return {};
    graded_draft rest;
    const auto& run = d.runs.front();
    rest.add(run.from, run.grade, std::span(d.tokens).subspan(pending.size()));
    rest.truncate(tokens_max);
    return rest;
  }
  std::shared_ptr<words> told;
  standing stand;
};

void as_it_is(graded_draft&) {}

/// A book and its answer.
struct played {
  explicit played(const draft_options& options = {.how = method::lookup},
                  std::shared_ptr<tenant_record> tenant = std::make_shared<tenant_record>(),
                  const book_constants& constants = {})
      : drafts(options, std::move(tenant), constants) {}

  std::shared_ptr<told_source::words> add(standing s = standing::text) {
    auto told = std::make_shared<told_source::words>();
    drafts.add(std::make_unique<told_source>(told, s));
    return told;
  }
  void append(const tokens& more, bool is_prompt = false) {
    drafts.append(more, is_prompt);
    while (drafts.catch_up()) {
    }
  }
  book::decision choose(const round_costs& costs = known_costs, std::uint32_t tokens_max = roomy) {
    return drafts.choose(costs, tokens_max, {}, as_it_is);
  }
  /// Chooses where there is a draft model.
  book::decision ask(double unread = 0, const round_costs& costs = known_costs, std::uint32_t tokens_max = roomy) {
    return drafts.choose(costs, tokens_max, {.is_there = true, .unread = unread}, as_it_is);
  }
  /// The answer continues with these tokens, whatever was drafted.
  void came(const tokens& more, std::uint32_t verified = 0) {
    drafts.judge(more, verified);
    append(more);
  }

  book drafts;
};

draft_part part(std::uint32_t count, double chance) {
  return {source::lookup, count, 0, static_cast<std::uint16_t>(chance * draft_part::certain)};
}

TEST(best_round, finds_the_width_with_the_most_tokens_per_microsecond) {
  std::mt19937 random(3);
  for (int world = 0; world < 300; ++world) {
    const round_costs costs{.round_us = 10.0 + random() % 2000, .row_us = 1.0 + random() % 300};
    std::vector<draft_part> draft;
    for (unsigned parts = random() % 4; parts > 0; --parts)
      draft.push_back(part(1 + random() % 20, random() % 101 / 100.0));
    const round_value best = best_round(draft, costs);
    round_value tried;
    double chance = 1;
    double rate = tried.rate(costs);
    for (const draft_part& p : draft) {
      for (std::uint32_t i = 0; i < p.count; ++i) {
        tried = {tried.tokens + (chance *= p.chance()), tried.rows + 1};
        rate = std::max(rate, tried.rate(costs));
      }
    }
    EXPECT_NEAR(best.rate(costs), rate, 1e-9);
  }
}

TEST(costs_of, are_guesses_until_something_was_measured) {
  const round_costs guess, got = costs_of({}, {.pass_us = 10, .row_ns = 1000}, 500);
  EXPECT_EQ(got.round_us, guess.round_us);
  EXPECT_EQ(got.row_us, guess.row_us);
  EXPECT_EQ(got.model_pass_us, guess.model_pass_us);
}

TEST(costs_of, a_round_has_its_share_of_the_pass_and_of_what_it_takes_beside) {
  const cost::step_cost model{.pass_us = 200, .row_ns = 3000};
  const auto alone = costs_of({.pass_us = 2000, .row_ns = 100'000}, model, 300);
  EXPECT_DOUBLE_EQ(alone.round_us, 2300);
  EXPECT_DOUBLE_EQ(alone.row_us, 100);
  EXPECT_DOUBLE_EQ(alone.model_pass_us, 200);
  EXPECT_DOUBLE_EQ(alone.model_row_us, 3);
  const auto shared = costs_of({.pass_us = 2000, .row_ns = 100'000, .sessions = 4}, model, 300);
  EXPECT_DOUBLE_EQ(shared.round_us, 100 + (1900 + 300) / 4.0);
}

TEST(costs_of, a_model_that_was_not_measured_is_cheaper_as_models_usually_are) {
  const round_costs guess, got = costs_of({.pass_us = 2000, .row_ns = 100'000}, {}, 0);
  EXPECT_DOUBLE_EQ(got.model_pass_us / 2000, guess.model_pass_us / guess.round_us);
  EXPECT_LT(got.model_row_us, got.row_us);
}

TEST(costs_of, any_cost_that_a_peer_may_send_is_a_price) {
  constexpr auto most = std::numeric_limits<std::uint32_t>::max();
  for (const cost::step_cost& target : {cost::step_cost{1, most, 0}, {most, 0, most}, {1, 1, most}, {most, most, 0}}) {
    for (const cost::step_cost& model : {cost::step_cost{}, {1, most, 0}, {most, 0, most}}) {
      const auto p = costs_of(target, model, 1e9);
      for (const double price : {p.round_us, p.row_us, p.model_pass_us, p.model_row_us}) {
        EXPECT_TRUE(std::isfinite(price) && price >= 0);
      }
      EXPECT_GT(p.round_us, 0);
      played a({.how = method::automatic});
      a.add()->says = draft_of(source::lookup, 3, {7, 8, 9});
      for (int round = 0; round < 20; ++round) {
        const auto got = a.ask(1000, p);
        EXPECT_LE(got.ask_model, roomy);
        a.drafts.hear_model(draft_of(source::model, 6, {7, 8}), 1, as_it_is);
        a.came({7, static_cast<token>(round)}, static_cast<std::uint32_t>(round % 3));
      }
    }
  }
}

// Which copy is verified.

TEST(book, without_a_source_has_no_draft) {
  played a;
  EXPECT_THAT(a.choose().draft.tokens, IsEmpty());
  a.came({1, 2});
  a.add();
  const auto got = a.choose();
  EXPECT_THAT(got.draft.tokens, IsEmpty()) << "or a source that proposes nothing";
  EXPECT_THAT(got.parts, IsEmpty());
  EXPECT_EQ(got.ask_model, 0u);
  EXPECT_FALSE(got.is_binding);
}

TEST(book, of_drafts_that_are_worth_the_same_takes_the_source_that_was_added_earlier) {
  for (const bool swapped : {false, true}) {
    played a;
    const auto first = a.add(), second = a.add();
    first->says = draft_of(swapped ? source::prediction : source::lookup, 3, {1, 2, 3});
    second->says = draft_of(swapped ? source::lookup : source::prediction, 3, {4, 5, 6});
    EXPECT_THAT(a.choose().draft.tokens, ElementsAre(1, 2, 3));
  }
}

TEST(book, takes_the_draft_that_is_worth_more) {
  played a;
  const auto first = a.add(), second = a.add();
  first->says = draft_of(source::prediction, 1, {1, 2, 3});
  second->says = draft_of(source::lookup, 6, {4, 5, 6});
  EXPECT_THAT(a.choose().draft.tokens, ElementsAre(4, 5, 6)) << "more evidence supports it";
  first->says = draft_of(source::prediction, 6, {1, 2, 3});
  second->says = draft_of(source::lookup, 6, {4, 5, 6, 7, 8, 9});
  EXPECT_THAT(a.choose().draft.tokens, ElementsAre(4, 5, 6, 7, 8, 9)) << "it goes further";
  first->says = nothing;
  EXPECT_THAT(a.choose().draft.tokens, ElementsAre(4, 5, 6, 7, 8, 9)) << "the other one proposes nothing";
}

TEST(book, a_binding_draft_goes_before_all_others) {
  for (const bool is_last : {false, true}) {
    played a({.how = method::automatic});
    const auto copy = is_last ? a.add() : nullptr;
    const auto span = a.add(standing::binding);
    const auto other = is_last ? copy : a.add();
    span->says = draft_of(source::program, 0, {1});
    other->says = draft_of(source::lookup, 6, {4, 5, 6, 7, 8, 9});
    const auto got = a.ask();
    EXPECT_THAT(got.draft.tokens, ElementsAre(1));
    EXPECT_TRUE(got.is_binding);
    EXPECT_EQ(got.ask_model, 0u) << "nor is the model asked";
    a.came({1});
    span->says = nothing;
    EXPECT_FALSE(a.choose().is_binding) << "a form that proposes nothing has no effect";
  }
}

TEST(book, gives_each_token_its_chance) {
  played a;
  a.add()->says = draft_of(source::lookup, 3, {1, 2, 3});
  const auto got = a.choose();
  std::uint32_t count = 0;
  for (const draft_part& p : got.parts) {
    EXPECT_EQ(p.from, source::lookup);
    EXPECT_NEAR(p.chance(), acceptance_record().chance({source::lookup, 3, 1}, 0, nullptr), 1e-4);
    count += p.count;
  }
  EXPECT_EQ(count, 3u);
}

TEST(book, copies_are_no_longer_than_the_options_and_the_round_allow) {
  for (const std::uint32_t room : {2U, 5U, 100U}) {
    played a({.how = method::lookup, .lookup_tokens_max = 5});
    const auto copy = a.add();
    copy->says = draft_of(source::lookup, 6, tokens(50, 7));
    EXPECT_EQ(a.choose(known_costs, room).draft.tokens.size(), std::min(room, 5U));
    copy->says = nothing;
    a.add(standing::form)->says = draft_of(source::program, 6, tokens(50, 7));
    EXPECT_EQ(a.choose(known_costs, room).draft.tokens.size(), std::min(room, 50U)) << "a form is not a copy";
  }
}

TEST(book, cuts_drafts_to_what_may_follow_and_weighs_what_is_left) {
  played a;
  const auto first = a.add(), second = a.add();
  first->says = draft_of(source::prediction, 6, {1, 2, 3, 4, 5, 6, 7, 8});
  second->says = draft_of(source::lookup, 6, {9, 9, 9, 9});
  const auto cut = [](graded_draft& d) { d.truncate(d.tokens.at(0) == 1 ? 1 : 3); };
  EXPECT_THAT(a.drafts.choose(known_costs, roomy, {}, cut).draft.tokens, ElementsAre(9, 9, 9));
  const auto none = a.drafts.choose(known_costs, roomy, {}, [](graded_draft& d) { d.truncate(0); });
  EXPECT_THAT(none.draft.tokens, IsEmpty());
  EXPECT_THAT(none.parts, IsEmpty());
  a.add(standing::binding)->says = draft_of(source::program, 6, {5, 5, 5});
  EXPECT_THAT(a.drafts.choose(known_costs, roomy, {}, cut).draft.tokens, ElementsAre(5, 5, 5))
      << "a known answer is not cut";
}

// Two sources disagree, and one is right each time.
TEST(book, a_contested_place_is_decided_by_what_came_there_before) {
  for (const bool lookup_is_right : {true, false}) {
    played a;
    const auto predicted = a.add(), looked_up = a.add();
    token fresh = 100;
    const auto disagree = [&] {
      predicted->says = draft_of(source::prediction, 4, {fresh, fresh + 1, fresh + 2});
      looked_up->says = draft_of(source::lookup, 4, {fresh + 3, fresh + 4, fresh + 5});
      fresh += 10;
    };
    for (int round = 0; round < 6; ++round) {
      disagree();
      (void)a.choose();
      a.came((lookup_is_right ? looked_up : predicted)->says.tokens, 3);
    }
    disagree();
    EXPECT_EQ(a.choose().draft.runs.at(0).from, lookup_is_right ? source::lookup : source::prediction);
    // The record has no effect at positions that are not contested.
    (lookup_is_right ? looked_up : predicted)->says = nothing;
    const auto alone = a.choose();
    ASSERT_FALSE(alone.parts.empty());
    EXPECT_EQ(alone.parts[0].from, lookup_is_right ? source::prediction : source::lookup);
    EXPECT_GT(alone.parts[0].chance(), 0.8);
  }
}

// The same with real sources: a file in the prompt, and a prediction that is a changed copy of it.
TEST(book, learns_whether_the_prediction_or_the_prompt_knows_the_changes) {
  tokens file, changed;
  for (token t = 0; t < 600; ++t) file.push_back(1000 + t);
  changed = file;
  for (std::size_t i = 20; i < changed.size(); i += 20) changed[i] = static_cast<token>(5000 + i);
  for (const bool answer_is_predicted : {true, false}) {
    played a({.how = method::prediction});
    a.drafts.add(std::make_unique<prediction_source>(changed));
    a.drafts.add(std::make_unique<lookup_source>(10));
    a.append(file, true);
    const tokens& answer = answer_is_predicted ? changed : file;
    int late_misses = 0;
    for (std::size_t at = 0; at < answer.size();) {
      const auto got = a.choose().draft.tokens;
      const auto left = std::span(answer).subspan(at);
      const auto right =
          static_cast<std::size_t>(std::mismatch(got.begin(), got.end(), left.begin(), left.end()).first - got.begin());
      if (at > 200 && right < std::min(got.size(), left.size())) ++late_misses;
      const auto fresh = left.first(std::min(right + 1, left.size()));
      a.came({fresh.begin(), fresh.end()}, static_cast<std::uint32_t>(got.size()));
      at += fresh.size();
    }
    EXPECT_LE(late_misses, 2) << answer_is_predicted;
  }
}

TEST(book, judges_drafts_that_were_not_used_too) {
  played a;
  const auto used = a.add(), unused = a.add();
  used->says = draft_of(source::prediction, 4, {1, 2, 3});
  unused->says = draft_of(source::lookup, 4, {4, 5, 6});
  for (int round = 0; round < 3; ++round) {
    EXPECT_THAT(a.choose().draft.tokens, ElementsAre(1, 2, 3)) << round;
    a.came({4, 5, 6}, 0);
    if (a.choose().draft.tokens.at(0) == 4) return;
    a.came({});
  }
  ADD_FAILURE() << "lookup's own draft was not seen";
}

TEST(book, judges_what_was_not_verified_too) {
  played a;
  a.add()->says = draft_of(source::lookup, 1, {1, 2, 3});
  const double before = a.choose().parts.at(0).chance();
  for (int round = 0; round < 5; ++round) {
    (void)a.choose();
    a.came({1, 2, 3}, 0);
  }
  EXPECT_GT(a.choose().parts.at(0).chance(), before);
  for (int round = 0; round < 20; ++round) {
    (void)a.choose();
    a.came({9}, 0);
  }
  EXPECT_LT(a.choose().parts.at(0).chance(), before);
}

TEST(book, learns_nothing_of_a_round_that_it_did_not_choose_or_that_brought_nothing) {
  played a;
  a.add()->says = draft_of(source::lookup, 1, {1, 2, 3});
  const double before = a.choose().parts.at(0).chance();
  a.came({});
  for (int round = 0; round < 5; ++round) a.came({1, 2, 3});
  EXPECT_EQ(a.choose().parts.at(0).chance(), before);
  EXPECT_THAT(played().drafts.hear_model(draft_of(source::model, 6, {1}), 1, as_it_is).draft.tokens, IsEmpty());
}

TEST(book, a_round_that_is_chosen_twice_is_judged_once) {
  played once, twice;
  for (played* const a : {&once, &twice}) {
    a->add()->says = draft_of(source::lookup, 1, {1, 2, 3});
    for (int round = 0; round < 3; ++round) {
      for (int n = 0; n < (a == &twice ? 2 : 1); ++n) (void)a->choose();
      a->came({1, 2, 3}, 3);
    }
  }
  EXPECT_EQ(once.choose().parts, twice.choose().parts);
}

// Whether the model is asked.

TEST(book, methods_that_name_the_model_always_ask_it_unless_a_form_speaks) {
  for (const method how : {method::assisted, method::blazedit}) {
    played a({.how = how});
    const auto form = a.add(standing::form), copy = a.add();
    for (int round = 0; round < 50; ++round) {
      copy->says = round % 2 == 0 ? draft_of(source::lookup, 6, tokens(80, 1)) : nothing;
      form->says = nothing;
      // The model is useless and expensive.
      EXPECT_GT(a.ask(1e9).ask_model, 0u) << round;
      a.drafts.hear_model(draft_of(source::model, 0, {99, 98}), 100, as_it_is);
      a.came({1, 2}, 0);
      copy->says = nothing;
      form->says = draft_of(source::program, 3, {1, 2});
      const auto got = a.ask();
      EXPECT_EQ(got.ask_model, 0u) << round;
      EXPECT_THAT(got.draft.tokens, ElementsAre(1, 2));
      a.came({1, 2}, 2);
    }
    EXPECT_EQ(a.choose().ask_model, 0u) << "there is no model";
    EXPECT_EQ(a.ask(0, known_costs, 0).ask_model, 0u) << "there is no space for a draft";
  }
}

TEST(book, other_methods_never_ask_the_model) {
  for (const method how : {method::regular, method::lookup, method::prediction}) {
    played a({.how = how});
    EXPECT_EQ(a.ask().ask_model, 0u);
  }
}

TEST(book, asks_for_as_many_tokens_as_the_method_and_the_round_allow) {
  EXPECT_EQ(played({.how = method::assisted}).ask().ask_model, 20u);
  const draft_options four_runs{.how = method::blazedit, .micro_draft_tokens = 9, .max_num_run = 4};
  EXPECT_EQ(played(four_runs).ask().ask_model, 40u);
  EXPECT_EQ(played(four_runs).ask(0, known_costs, 7).ask_model, 7u);
}

TEST(book, asks_for_twice_what_was_verified_last) {
  played a({.how = method::blazedit});
  const auto width_after = [&](std::uint32_t offered, std::uint32_t verified) {
    EXPECT_GT(a.ask(0, known_costs, 1000).ask_model, 0u);
    a.drafts.hear_model(draft_of(source::model, 6, tokens(offered, 1)), 1, as_it_is);
    a.came({2}, verified);
    return a.ask(0, known_costs, 1000).ask_model;
  };
  const std::uint32_t most = draft_tokens_max({.how = method::blazedit});
  EXPECT_EQ(a.ask(0, known_costs, 1000).ask_model, most);
  EXPECT_EQ(width_after(100, 100), most);
  EXPECT_EQ(width_after(100, 10), 20u) << "it was cut";
  EXPECT_EQ(width_after(20, 20), 40u) << "it was not";
  EXPECT_EQ(width_after(0, 0), 40u) << "nothing was offered";
  EXPECT_EQ(width_after(40, 0), 8u) << "never less than a few";
  for (int i = 0; i < 40; ++i) (void)width_after(8, 8);
  EXPECT_EQ(a.ask(0, known_costs, 1000).ask_model, most);
}

TEST(book, verifies_what_the_model_drafted_in_place_of_the_copy) {
  played a({.how = method::blazedit});
  a.add()->says = draft_of(source::lookup, 6, {1, 2, 3});
  const auto before = a.ask();
  EXPECT_THAT(before.draft.tokens, ElementsAre(1, 2, 3)) << "because there was no answer";
  const auto heard = a.drafts.hear_model(draft_of(source::model, 4, {7, 8}), 1, as_it_is);
  EXPECT_THAT(heard.draft.tokens, ElementsAre(7, 8));
  ASSERT_FALSE(heard.parts.empty());
  EXPECT_EQ(heard.parts[0].from, source::model);
  a.came({7, 8}, 2);
  (void)a.ask();
  EXPECT_THAT(a.drafts.hear_model({}, 1, as_it_is).draft.tokens, ElementsAre(1, 2, 3)) << "it proposed nothing";
  (void)a.ask();
  const auto cut = [](graded_draft& d) { d.truncate(1); };
  EXPECT_THAT(a.drafts.hear_model(draft_of(source::model, 4, {7, 8}), 1, cut).draft.tokens, ElementsAre(7));
  (void)a.ask();
  const auto all = [](graded_draft& d) { d.truncate(0); };
  EXPECT_THAT(a.drafts.hear_model(draft_of(source::model, 4, {7, 8}), 1, all).draft.tokens, ElementsAre(1, 2, 3));
}

TEST(book, lives_with_any_draft_that_a_peer_may_send) {
  const auto strange = static_cast<source>(200);
  const auto runs_of = [](std::uint32_t count) { return std::vector<graded_segment>{{source::model, 3, count}}; };
  struct sent {
    const char* name;
    graded_draft draft;
    std::size_t kept;
  };
  const sent table[] = {
      {"more in a run than there is", {{1, 2}, runs_of(1000)}, 2},
      {"so many that they overflow", {{1, 2}, {{source::model, 3, 0xffffffff}, {source::model, 4, 0xffffffff}}}, 2},
      {"fewer than there is", {{1, 2, 3}, runs_of(2)}, 3},
      {"no runs", {{1, 2, 3}, {}}, 3},
      {"no tokens", {{}, runs_of(7)}, 0},
      {"empty runs", {{1, 2}, {{source::model, 3, 0}, {source::model, 3, 2}, {source::model, 200, 0}}}, 2},
      {"a grade of 200", {{1, 2}, {{source::model, 200, 2}}}, 2},
      {"a source that is none", {{1, 2}, {{strange, 3, 2}}}, 2},
      {"the end of all sources", {{1, 2}, {{source::last_, grades_count, 1}, {source::model, 3, 1}}}, 2},
      {"more than there is room for", {tokens(roomy + 50, 1), runs_of(roomy + 50)}, roomy},
      {"strange tokens", {{-1, std::numeric_limits<token>::min(), std::numeric_limits<token>::max()}, runs_of(3)}, 3},
  };
  for (const method how : {method::assisted, method::automatic}) {
    for (const sent& one : table) {
      for (const double passes : {0.0, 1.0, 4294967295.0}) {
        played a({.how = how});
        a.add()->says = draft_of(source::lookup, 0, {1});
        ASSERT_GT(a.ask().ask_model, 0u);
        const auto got = a.drafts.hear_model(one.draft, passes, as_it_is);
        std::size_t count = 0;
        for (const draft_part& p : got.parts) {
          EXPECT_LT(p.grade, grades_count) << one.name;
          EXPECT_LT(p.from, source::last_) << one.name;
          EXPECT_GT(p.count, 0u) << one.name;
          count += p.count;
        }
        EXPECT_EQ(count, got.draft.tokens.size()) << one.name;
        EXPECT_EQ(count, one.kept == 0 ? 1 : one.kept) << one.name << ": the copy where nothing is left";
        a.came({1, 2, 3}, static_cast<std::uint32_t>(count));
        EXPECT_GT(a.choose().parts.at(0).chance(), 0) << one.name;
      }
    }
  }
}

TEST(book, a_grade_that_is_none_counts_as_the_lowest) {
  const auto chance_of = [](source from, std::uint8_t grade) {
    played a({.how = method::blazedit});
    (void)a.ask();
    const auto got = a.drafts.hear_model({{1}, {{from, grade, 1}}}, 1, as_it_is);
    EXPECT_EQ(got.parts.at(0).from, source::model);
    return got.parts.at(0).chance();
  };
  EXPECT_EQ(chance_of(source::model, 200), chance_of(source::model, 0));
  EXPECT_EQ(chance_of(static_cast<source>(77), 6), chance_of(source::model, 0));
}

// `automatic` with an answer of new tokens: there is nothing to copy, and the model is right in some of them.

struct watched {
  int asked = 0;
  double us = 0;
  double model_us = 0;  // part of us
};
struct small_world {
  round_costs costs = known_costs;
  std::uint32_t right = 0;   // out of 8 tokens
  std::uint32_t passes = 4;  // passes for 8 tokens
  double unread = 0;         // in each round
};
watched play(played& a, const small_world& w, int rounds) {
  watched seen;
  static token fresh = 100;
  for (int round = 0; round < rounds; ++round) {
    auto got = a.ask(w.unread, w.costs);
    tokens draft, came;
    for (std::uint32_t i = 0; i < 8; ++i) {
      came.push_back(++fresh);
      draft.push_back(i < w.right ? came.back() : 0);
    }
    const bool asked = got.ask_model > 0;
    if (asked) {
      got = a.drafts.hear_model(draft_of(source::model, 3, draft), w.passes, as_it_is);
      const double us = w.passes * w.costs.model_pass_us + w.unread * w.costs.model_row_us;
      seen.us += us;
      seen.model_us += us;
      ++seen.asked;
    }
    const auto verified = static_cast<std::uint32_t>(best_round(got.parts, w.costs).rows);
    came.resize(asked ? std::min(verified, w.right) + 1 : 1);
    seen.us += w.costs.round_us + verified * w.costs.row_us;
    if (asked) seen.model_us += verified * w.costs.row_us;
    a.came(came, verified);
  }
  return seen;
}

TEST(book, automatic_asks_a_model_that_saves_time) {
  played a({.how = method::automatic});
  EXPECT_EQ(play(a, {.right = 8}, 300).asked, 300);
  played cheap({.how = method::automatic});
  EXPECT_EQ(play(cheap, {.costs = {.model_pass_us = 60}, .right = 2}, 300).asked, 300);
}

TEST(book, automatic_leaves_a_model_alone_whose_passes_cost_as_much_as_the_targets) {
  const auto asked_at = [](double round_us, double pass_us, std::uint32_t right) {
    played a({.how = method::automatic});
    return play(a, {.costs = {.round_us = round_us, .row_us = 20, .model_pass_us = pass_us}, .right = right}, 1000)
        .asked;
  };
  EXPECT_LT(asked_at(1000, 1000, 2), 50);
  EXPECT_LT(asked_at(1000, 900, 2), 50);
  EXPECT_LT(asked_at(100, 60, 2), 50) << "many sessions share the target's passes";
  EXPECT_EQ(asked_at(1000, 60, 2), 1000);
  EXPECT_EQ(asked_at(20'000, 1000, 2), 1000) << "rounds take long compared with their passes";
}

TEST(book, automatic_spends_a_small_share_of_the_time_on_trials_of_a_useless_model) {
  for (const double unread : {0.0, 500.0}) {
    for (const double pass_us : {5.0, 20.0, 60.0, 200.0, 2000.0}) {
      small_world w{.costs = known_costs, .right = 0, .passes = 4, .unread = unread};
      w.costs.model_pass_us = pass_us;
      played a({.how = method::automatic});
      const auto begun = play(a, w, 500);
      const auto later = play(a, w, 20'000);
      const double share = 1 / book_constants{}.trial_share;
      EXPECT_GT(later.asked, 0) << "it is tried again";
      EXPECT_LT(later.model_us, 1.2 * share * later.us) << "unread " << unread << ", pass " << pass_us;
      EXPECT_LT(begun.model_us, 0.3 * begun.us) << "unread " << unread << ", pass " << pass_us;
    }
  }
}

TEST(book, automatic_asks_again_when_the_model_has_become_good) {
  played a({.how = method::automatic});
  (void)play(a, {.right = 0}, 2000);
  (void)play(a, {.right = 8}, 2000);
  EXPECT_GT(play(a, {.right = 8}, 1000).asked, 950);
  // Its drafts saved eight rounds each, which are remembered for some 80 drafts.
  (void)play(a, {.right = 0}, 300);
  EXPECT_LT(play(a, {.right = 0}, 1000).asked, 80) << "and gives it up again";
}

/// The rounds in which the model is not asked because of what it has to read.
int rounds_before(played& a, double unread, const round_costs& costs = known_costs) {
  for (int i = 0; i < 5000; ++i) {
    if (a.ask(unread, costs).ask_model > 0) return i;
    a.came({1}, 0);
  }
  return 5000;
}

TEST(book, automatic_reads_when_what_was_forgone_has_paid_for_it) {
  const auto waits = [](double unread, const round_costs& costs = known_costs) {
    played a({.how = method::automatic});
    return rounds_before(a, unread, costs);
  };
  EXPECT_EQ(waits(0), 0);
  EXPECT_EQ(waits(500), 0) << "the first draft pays for this few";
  EXPECT_GE(waits(5000), 1);
  EXPECT_GT(waits(20'000), 2 * waits(5000));
  round_costs free_rows = known_costs;
  free_rows.model_row_us = 0;
  EXPECT_EQ(waits(1e6, free_rows), 0);
  // Rent while that costs less than buying: the forgone savings are at most the cost of reading.
  const book_constants c;
  const double saved =
      c.first_saved_rounds * (known_costs.round_us - 2 * known_costs.row_us - known_costs.model_pass_us);
  for (const double unread : {3000.0, 10'000.0, 20'000.0}) {
    const double forgone_us = waits(unread) * saved / (1 + c.first_saved_rounds);
    EXPECT_LE(forgone_us, unread * known_costs.model_row_us) << unread;
    EXPECT_GE(forgone_us + saved, 0.9 * unread * known_costs.model_row_us) << unread;
  }
}

TEST(book, automatic_reads_at_once_what_a_usual_answer_pays_for) {
  const auto tenant = std::make_shared<tenant_record>();
  for (int answer = 0; answer < 10; ++answer) {
    played a({.how = method::automatic}, tenant);
    (void)play(a, {.right = 8}, 50);
  }
  played next({.how = method::automatic}, tenant), first({.how = method::automatic});
  EXPECT_EQ(rounds_before(next, 10'000), 0);
  EXPECT_GT(rounds_before(first, 10'000), 0);
}

TEST(book, automatic_does_not_pay_twice_what_it_read) {
  played a({.how = method::automatic});
  const int first = rounds_before(a, 20'000);
  a.came({1}, 0);
  EXPECT_GE(rounds_before(a, 20'000), first) << "savings forgone before the model was asked are spent";
}

// The copy resumes a token later, and would give most of the model's draft of 16 tokens.
TEST(book, automatic_leaves_to_copies_what_they_bring_a_token_later) {
  const auto asked_when = [](bool copy_resumes) {
    played a({.how = method::automatic});
    const auto copy = a.add();
    int asked = 0;
    for (int round = 0; round < 400; ++round) {
      tokens came;
      for (token t = 0; t < 16; ++t) came.push_back(1000 + round * 20 + t);
      copy->says = copy_resumes ? draft_of(source::lookup, 6, came) : nothing;
      const auto got = a.ask(0, {.round_us = 1000, .row_us = 50, .model_pass_us = 400});
      if (got.ask_model > 0) {
        ++asked;
        (void)a.drafts.hear_model(draft_of(source::model, 6, came), 4, as_it_is);
      } else if (!copy_resumes) {
        came.resize(1);
      }
      a.came(came, static_cast<std::uint32_t>(came.size()) - (came.size() > 1 ? 0 : 1));
    }
    return asked;
  };
  EXPECT_LT(asked_when(true), 60);
  EXPECT_EQ(asked_when(false), 400);
}

TEST(book, what_one_answer_learned_serves_the_tenants_next_and_no_other_tenants) {
  const auto tenant = std::make_shared<tenant_record>(), other = std::make_shared<tenant_record>();
  const auto asked_in = [](const std::shared_ptr<tenant_record>& t) {
    played a({.how = method::automatic}, t);
    return play(a, {.right = 0}, 20).asked;
  };
  const int first = asked_in(tenant);
  EXPECT_GT(first, 1);
  for (int i = 0; i < 3; ++i) (void)asked_in(tenant);
  EXPECT_LT(asked_in(tenant), first);
  EXPECT_EQ(asked_in(other), first) << "another tenant's answers begin like the first";
}

TEST(book, chances_that_one_answer_learned_serve_the_tenants_next_and_no_other_tenants) {
  const auto tenant = std::make_shared<tenant_record>(), other = std::make_shared<tenant_record>();
  const auto first_chance = [](const std::shared_ptr<tenant_record>& t) {
    played a({.how = method::lookup}, t);
    a.add()->says = draft_of(source::lookup, 6, {1, 2});
    return a.choose().parts.at(0).chance();
  };
  const double before = first_chance(tenant);
  {
    played a({.how = method::lookup}, tenant);
    a.add()->says = draft_of(source::lookup, 6, {1, 2});
    for (int round = 0; round < 30; ++round) {
      (void)a.choose();
      a.came({9}, 2);
    }
  }
  EXPECT_LT(first_chance(tenant), before / 2);
  EXPECT_EQ(first_chance(other), before);
}

TEST(book, follows_what_rounds_take_beside_their_passes) {
  const auto tenant = std::make_shared<tenant_record>();
  played a({}, tenant);
  for (int i = 0; i < 200; ++i) a.drafts.note_overhead(1000);
  EXPECT_NEAR(a.drafts.overhead_us(), 1000, 100);
  EXPECT_EQ(played({}, tenant).drafts.overhead_us(), a.drafts.overhead_us()) << "the tenant's answers share it";
  for (int i = 0; i < 500; ++i) a.drafts.note_overhead(-1e9);
  EXPECT_GT(a.drafts.overhead_us(), 0);
}

// The log of a book.

TEST(book, a_long_prompt_is_indexed_in_parts_and_nothing_is_found_before_that) {
  std::mt19937 random(2);
  tokens prompt(100'000);
  for (token& t : prompt) t = static_cast<token>(random() % 50'000);
  for (const bool is_predicted : {true, false}) {
    book b({.how = method::prediction}, std::make_shared<tenant_record>());
    if (is_predicted) b.add(std::make_unique<prediction_source>(prompt));
    b.add(std::make_unique<lookup_source>(10));
    b.append(prompt, true);
    int parts = 1;
    for (bool is_first = true; b.catch_up(); ++parts, is_first = false) {
      const auto early = b.choose(known_costs, 4, {}, as_it_is);
      // The prediction comes first and may draft before the log is indexed.
      if (!is_predicted || is_first) {
        EXPECT_THAT(early.draft.tokens, IsEmpty()) << parts;
      }
    }
    EXPECT_GE(parts, is_predicted ? 90 : 45);
    EXPECT_LE(parts, 100);
    EXPECT_FALSE(b.catch_up());
    const std::span<const token> copied(prompt.data() + 50'000, 8);
    b.append(copied);
    EXPECT_FALSE(b.catch_up());
    const auto got = b.choose(known_costs, 4, {}, as_it_is);
    EXPECT_EQ(got.draft.tokens, tokens(prompt.begin() + 50'008, prompt.begin() + 50'012));
  }
}

TEST(book, after_tokens_left_the_log_finds_what_is_left) {
  book b({.how = method::lookup}, std::make_shared<tenant_record>());
  b.add(std::make_unique<lookup_source>(10));
  const auto found = [&] { return b.choose(known_costs, 3, {}, as_it_is).draft.tokens; };
  b.append(tokens{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, true);
  b.append(tokens{3, 4, 5});
  EXPECT_THAT(found(), ElementsAre(6, 7, 8));
  b.drop(6, 3);  // drops 7, 8 and 9
  EXPECT_THAT(found(), ElementsAre(6, 10, 11));
  b.drop(0, 5);
  EXPECT_THAT(found(), IsEmpty()) << "the copied tokens are gone";
  b.append(tokens{6});
  EXPECT_THAT(found(), ElementsAre(10, 11, 12));
}

TEST(book, a_log_that_loses_tokens_while_it_is_indexed_is_like_one_that_never_had_them) {
  std::mt19937 random(4);
  tokens log(30'000);
  for (token& t : log) t = static_cast<token>(random() % 20'000);
  book b({.how = method::lookup}, std::make_shared<tenant_record>());
  b.add(std::make_unique<lookup_source>(10));
  b.append(log, true);
  b.drop(4000, 10'000);
  log.erase(log.begin() + 4000, log.begin() + 14'000);
  while (b.catch_up()) {
  }
  for (const std::ptrdiff_t at : {1000, 3995, 4000, 15'000}) {
    b.append(tokens(log.begin() + at, log.begin() + at + 8));
    while (b.catch_up()) {
    }
    EXPECT_EQ(b.choose(known_costs, 4, {}, as_it_is).draft.tokens, tokens(log.begin() + at + 8, log.begin() + at + 12));
  }
}

/// An answer whose MTP layer drafts 50, 51, 52 after every round and takes `row_us` for each row.
struct mtp_play : played {
  explicit mtp_play(method how = method::automatic) : played({.how = how}) {
    drafts.add_mtp();
    append({1, 2, 3}, true);
  }
  /// A round: asks the layer, and the answer goes on with the draft's first `right` tokens and another. Returns whether
  /// it was asked.
  bool round(std::uint32_t right, std::uint32_t row_us) {
    const book::decision d = choose();
    const bool is_asked = drafts.ask_mtp(known_costs).tokens > 0;
    tokens all{50, 51, 52};
    all.resize(std::min<std::size_t>(right, d.draft.tokens.size()));
    all.push_back(next++);
    length += static_cast<std::uint32_t>(all.size());
    drafts.judge(all, static_cast<std::uint32_t>(d.draft.tokens.size()));
    if (is_asked) drafts.hear_mtp(length, {.tokens = {50, 51, 52}, .grades = {4, 4, 4}, .rows = 4, .row_us = row_us});
    append(all);
    return is_asked;
  }
  std::uint32_t length = 3;
  token next = 1000;  // nothing repeats
};

TEST(book, drafts_what_the_mtp_layer_said_after_the_round_before) {
  mtp_play a;
  EXPECT_TRUE(a.round(0, 50));
  const book::decision d = a.choose();
  EXPECT_EQ(d.draft.tokens, (tokens{50, 51, 52}));
  EXPECT_EQ(d.parts.at(0).from, source::mtp);
  a.came({50, 7}, 3);
  EXPECT_TRUE(a.choose().draft.tokens.empty()) << "the answer went another way";
}

TEST(book, asks_the_mtp_layer_while_its_drafts_save_more_than_they_take) {
  mtp_play good;
  int asked = 0;
  for (int i = 0; i < 100; ++i) asked += good.round(3, 50) ? 1 : 0;
  EXPECT_EQ(asked, 100);
  mtp_play bad;
  asked = 0;
  for (int i = 0; i < 400; ++i) asked += bad.round(0, 50) ? 1 : 0;
  EXPECT_LT(asked, 100) << "nothing is right";
  EXPECT_GT(asked, 5) << "it is tried again";
  mtp_play fixed(method::mtp);
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(fixed.round(0, 50)) << "the method asks for it";
}

TEST(book, counts_rows_of_the_mtp_layer_whose_tokens_were_not_worth_verifying) {
  mtp_play a;
  int asked = 0;
  for (int i = 0; i < 400; ++i) {
    (void)a.choose();
    const bool is_asked = a.drafts.ask_mtp(known_costs).tokens > 0;
    asked += is_asked ? 1 : 0;
    a.drafts.judge(tokens{a.next}, 0);
    if (is_asked) a.drafts.hear_mtp(++a.length, {.tokens = {}, .grades = {}, .rows = 1, .row_us = 50});
    a.append({a.next++});
  }
  EXPECT_LT(asked, 200);
}

TEST(book, asks_no_mtp_layer_without_its_source) {
  played a({.how = method::lookup});
  EXPECT_EQ(a.drafts.ask_mtp(known_costs).tokens, 0u);
  a.drafts.hear_mtp(0, {.tokens = {5}, .grades = {6}, .rows = 1, .row_us = 1});
  EXPECT_TRUE(a.choose().draft.tokens.empty());
}

TEST(book, says_what_a_token_of_the_mtp_layer_costs) {
  mtp_play a;
  EXPECT_FLOAT_EQ(a.drafts.ask_mtp(known_costs).token_cost, 0.22F) << "before it was measured: a pass of a draft model";
  a.drafts.hear_mtp(3, {.tokens = {50}, .grades = {4}, .rows = 2, .row_us = 80});
  EXPECT_FLOAT_EQ(a.drafts.ask_mtp(known_costs).token_cost, 0.1F);
}

}  // namespace
}  // namespace redline::draft
