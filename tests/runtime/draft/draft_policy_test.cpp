#include "runtime/draft/draft_policy.hpp"

#include <gtest/gtest.h>

#include <random>

#include "runtime/base/philox.hpp"

namespace redline::draft {
namespace {

constexpr round_prices known_prices{.round_us = 1000, .row_us = 20, .model_pass_us = 200, .model_row_us = 2};

draft_part part(std::uint32_t count, double chance) {
  return {source::lookup, count, 0, static_cast<std::uint16_t>(chance * draft_part::certain)};
}

TEST(best_round, finds_the_width_with_the_most_tokens_per_microsecond) {
  std::mt19937 random(3);
  for (int world = 0; world < 300; ++world) {
    const round_prices prices{.round_us = 10.0 + random() % 2000, .row_us = 1.0 + random() % 300};
    std::vector<draft_part> draft;
    for (unsigned parts = random() % 4; parts > 0; --parts)
      draft.push_back(part(1 + random() % 20, random() % 101 / 100.0));
    const round_value best = best_round(draft, prices);
    round_value tried;
    double chance = 1;
    double rate = tried.tokens / tried.us(prices);
    for (const draft_part& p : draft) {
      for (std::uint32_t i = 0; i < p.count; ++i) {
        tried = {tried.tokens + (chance *= p.chance()), tried.rows + 1};
        rate = std::max(rate, tried.tokens / tried.us(prices));
      }
    }
    EXPECT_NEAR(best.tokens / best.us(prices), rate, 1e-9);
  }
}

/// An answer in which copies of an old text take turns with new text, and its drafts.
struct small_world {
  std::uint32_t copied = 30;    // tokens of each copy
  std::uint32_t fresh = 3;      // tokens between two of them
  double sure = 0.7;            // the model's own token is right in new text
  double disagrees = 0;         // the model refuses a token of a right copy
  std::uint32_t runs = 4;       // passes of the model per draft
  std::uint32_t length = 3000;  // tokens
  round_prices prices = known_prices;

  [[nodiscard]] bool is_fresh(std::uint32_t at) const { return at % (copied + fresh) >= copied; }
  [[nodiscard]] static double noise(std::uint32_t at, std::uint32_t salt) {
    return philox4x32({at, salt, 0, 0}, {1, 2})[0] / 4294967296.0;
  }
  /// Tokens since the copy's beginning: they speak for it. Its first token is not found.
  [[nodiscard]] std::uint32_t matched(std::uint32_t at) const {
    return is_fresh(at) ? 0 : std::min(at % (copied + fresh), 9U);
  }
  /// Right tokens of the copy that is ready, which is offered with 40 tokens.
  [[nodiscard]] std::uint32_t ready(std::uint32_t at) const {
    return matched(at) == 0 ? 0 : copied - at % (copied + fresh);
  }
  struct models {
    std::uint32_t right = 0, drafted = 0, passes = 0;
  };
  [[nodiscard]] models drafts(std::uint32_t at) const {
    models m;
    bool good = true;
    for (std::uint32_t pass = 0; pass < runs; ++pass) {
      ++m.passes;
      // What is looked up and right, then a token of its own.
      const std::uint32_t place = at + m.drafted;
      std::uint32_t agreed = 0;
      while (agreed < ready(place) && noise(place + agreed, 5) >= disagrees) ++agreed;
      const bool refused = agreed < ready(place);
      const bool own = !refused && noise(place + agreed, 9) < (is_fresh(place + agreed) ? sure : 0.95);
      m.drafted += agreed + 1;
      if (good) m.right += agreed + (own ? 1 : 0);
      good = good && own;
    }
    return m;
  }
};

struct rounds_ahead {
  double rounds = 0;
  double rows = 0;
};

/// The time an answer takes. chooses: whether the model drafts, at this place.
template<class F, class L>
double play(const small_world& w, F&& chooses, L&& learn) {
  double us = 0;
  for (std::uint32_t at = 0; at < w.length;) {
    const std::uint32_t ready = w.ready(at);
    const round_value value{ready + 1.0, static_cast<double>(ready)};
    const draft_policy::place here{.grade = grade_of_match(w.matched(at)), .ready = value};
    const bool by_model = chooses(here);
    const auto m = w.drafts(at);
    const std::uint32_t came = by_model ? m.right + 1 : ready + 1;
    us += by_model ? w.prices.round_us + m.drafted * w.prices.row_us + m.passes * w.prices.model_pass_us
                   : value.us(w.prices);
    // Without the model: round after round, the last in part.
    rounds_ahead without;
    for (std::uint32_t i = at; i < at + came;) {
      const double gives = w.ready(i) + 1;
      const double share = std::min(1.0, (at + came - i) / gives);
      without.rounds += share;
      without.rows += share * w.ready(i);
      i += static_cast<std::uint32_t>(gives);
    }
    learn(here, by_model, static_cast<double>(came), m, without);
    at += came;
  }
  return us;
}
double play_learned(const small_world& w, draft_policy& p) {
  return play(
      w, [&](const auto& here) { return p.chooses_model(here, w.prices); },
      [&](const auto& here, bool by_model, double came, const auto& m, const auto& without) {
        if (by_model) {
          p.learn_model(here.grade,
                        {.extra_tokens = came - here.ready.tokens,
                         .rows = static_cast<double>(m.drafted),
                         .passes = static_cast<double>(m.passes),
                         .ready_rounds = without.rounds,
                         .ready_rows = without.rows},
                        w.prices);
        }
        p.learn_round(came);
      });
}

// Every rule that looks at the grade alone, against what is learned.
TEST(draft_policy, comes_close_to_the_best_choice_of_grades_for_the_model) {
  const auto nothing = [](const auto&, bool, double, const auto&, const auto&) {};
  std::vector<small_world> worlds;
  for (const std::uint32_t copied : {2U, 12U, 40U}) {
    for (const std::uint32_t fresh : {1U, 3U, 20U}) {
      for (const double sure : {0.2, 0.8}) {
        for (const double disagrees : {0.0, 0.1}) {
          for (const double pass_us : {30.0, 400.0}) {
            small_world w{.copied = copied, .fresh = fresh, .sure = sure, .disagrees = disagrees};
            w.prices.model_pass_us = pass_us;
            worlds.push_back(w);
          }
        }
      }
    }
  }
  double sum = 0;
  for (const small_world& w : worlds) {
    double best = 1e18;
    for (unsigned grades = 0; grades < 1U << grades_count; ++grades) {
      best = std::min(best, play(
                                w, [&](const auto& here) { return (grades >> here.grade & 1U) != 0; }, nothing));
    }
    draft_policy p;
    const double ratio = best / play_learned(w, p);
    sum += ratio;
    EXPECT_GT(ratio, 0.8) << "copied " << w.copied << ", fresh " << w.fresh << ", sure " << w.sure << ", disagrees "
                          << w.disagrees << ", pass " << w.prices.model_pass_us;
  }
  EXPECT_GT(sum / static_cast<double>(worlds.size()), 0.96);
}

TEST(draft_policy, expects_no_more_of_the_model_than_finds_room_in_the_draft) {
  const draft_policy::place roomy{.tokens_max = 300, .grade = 4, .ready = {8.6, 8}};
  draft_policy::place narrow = roomy;
  narrow.tokens_max = 8;
  EXPECT_TRUE(draft_policy().chooses_model(roomy, {}));
  EXPECT_FALSE(draft_policy().chooses_model(narrow, {}));
}

// Where the answer leaves the old text a copy gives nothing; whether it comes back to it one token later is what
// counts.
TEST(draft_policy, leaves_to_copies_what_they_bring_a_token_later) {
  const round_prices prices{.round_us = 1000, .row_us = 50, .model_pass_us = 400};
  const auto models_drafts = [&](bool comes_back) {
    draft_policy p;
    int drafts = 0;
    for (int i = 0; i < 100; ++i) {
      if (p.chooses_model({.grade = 1, .ready = {1.2, 2}}, prices)) {
        ++drafts;
        p.learn_model(
            1, {.extra_tokens = 15, .rows = 15, .passes = 4, .ready_rounds = comes_back ? 2.0 : 13, .ready_rows = 16},
            prices);
        p.learn_round(16);
        continue;
      }
      p.learn_round(1);
      if (!comes_back) continue;
      (void)p.chooses_model({.grade = 6, .ready = {41, 40}}, prices);
      p.learn_round(41);
    }
    return drafts;
  };
  EXPECT_LT(models_drafts(true), 20);
  EXPECT_GT(models_drafts(false), 80);
}

/// A round of new text: nothing is ready.
constexpr draft_policy::place in_new_text{};

int drafts_in(draft_policy& p, int rounds, double right, const round_prices& prices = known_prices) {
  int drafts = 0;
  for (int i = 0; i < rounds; ++i) {
    const bool model = p.chooses_model(in_new_text, prices);
    drafts += model ? 1 : 0;
    const double came = model ? right + 1 : 1;
    if (model) p.learn_model(0, {.extra_tokens = right, .rows = 8, .passes = 4, .ready_rounds = came}, prices);
    p.learn_round(came);
  }
  return drafts;
}

TEST(draft_policy, gives_a_model_up_that_is_wrong_and_tries_it_again) {
  draft_policy p;
  EXPECT_LT(drafts_in(p, 200, 0), 10);
  const int later = drafts_in(p, 10'000, 0);
  EXPECT_GT(later, 2);
  EXPECT_LT(later, 100);
  EXPECT_GT(drafts_in(p, 10'000, 6), 7000) << "and keeps it once it is right";
}

TEST(draft_policy, leaves_a_model_alone_that_costs_more_than_it_saves) {
  draft_policy dear;
  EXPECT_LT(drafts_in(dear, 300, 2, {.model_pass_us = 900}), 10);
  draft_policy cheap;
  EXPECT_EQ(drafts_in(cheap, 300, 2, {.model_pass_us = 60}), 300);
  draft_policy shared;
  EXPECT_LT(drafts_in(shared, 300, 2, {.round_us = 100, .model_pass_us = 60}), 10) << "many sessions share the passes";
}

TEST(draft_policy, begins_with_what_the_tenants_answers_showed) {
  const auto tenant = std::make_shared<draft_policy>();
  int drafts = 0;
  for (int answer = 0; answer < 50; ++answer) {
    draft_policy p(tenant);
    drafts += drafts_in(p, 10, 0);
  }
  EXPECT_LT(drafts, 15);
  draft_policy own(tenant);
  draft_policy fresh;
  EXPECT_GT(drafts_in(fresh, 1, 0), drafts_in(own, 1, 0));
}

/// Rounds in which the model does not draft because of what it has to read.
int rounds_before(draft_policy& p, const draft_policy::place& here, const round_prices& prices = known_prices) {
  for (int i = 0; i < 1000; ++i) {
    if (p.chooses_model(here, prices)) return i;
    p.learn_round(1);
  }
  return 1000;
}

TEST(draft_policy, reads_what_it_missed_when_rounds_without_it_have_lost_as_much) {
  const auto waits = [](double unread) {
    const auto tenant = std::make_shared<draft_policy>();
    {  // long copies, in which the model saves nothing
      draft_policy before(tenant);
      draft_policy::place copy{.grade = 6, .ready = {100, 99}};
      for (int i = 0; i < 50; ++i) {
        (void)before.chooses_model(copy, known_prices);
        before.learn_round(100);
      }
    }
    draft_policy p(tenant);
    return rounds_before(p, {.unread = unread});
  };
  EXPECT_EQ(waits(0), 0);
  EXPECT_GE(waits(5000), 1);
  EXPECT_GT(waits(20'000), 2 * waits(5000));
  EXPECT_LT(waits(20'000), 150);
}

TEST(draft_policy, reads_a_prompt_that_the_rest_of_the_answer_pays_for) {
  const draft_policy::place begins{.unread = 20'000, .tokens_to_come = 0};
  const auto waits = [&](double tokens_to_come) {
    draft_policy p;
    auto here = begins;
    here.tokens_to_come = tokens_to_come;
    return rounds_before(p, here);
  };
  EXPECT_EQ(waits(4000), 0);
  EXPECT_GT(waits(10), 5);
}

// A draft saves what rounds without it would have taken, and nothing for tokens that the copy brings as well, however
// little was expected of the copy.
TEST(draft_policy, credits_the_model_with_saved_rounds_and_not_with_tokens) {
  const auto models_drafts = [&](double ready_rounds) {
    draft_policy p;
    int drafts = 0;
    for (int i = 0; i < 100; ++i) {
      const bool model = p.chooses_model({.grade = 6, .ready = {5, 4}}, known_prices);
      drafts += model ? 1 : 0;
      const draft_policy::models_round came{
          .extra_tokens = 27, .rows = 31, .passes = 4, .ready_rounds = ready_rounds, .ready_rows = 31};
      if (model) p.learn_model(6, came, known_prices);
      p.learn_round(32);
    }
    return drafts;
  };
  EXPECT_LT(models_drafts(1), 10) << "one round would have brought it all";
  EXPECT_EQ(models_drafts(3), 100);
}

// What comes after the prompt without the model has to be read, too.
TEST(draft_policy, reads_a_prompt_only_where_savings_pay_for_the_answers_reading_as_well) {
  const auto reads = [](double saved_us) {
    const auto tenant = std::make_shared<draft_policy>();
    for (int i = 0; i < 40; ++i) {  // in turns a draft that saves this much and a copy of 40 tokens
      draft_policy before(tenant);
      (void)before.chooses_model({}, known_prices);
      before.learn_model(0, {.extra_tokens = 9, .ready_rounds = 1 + saved_us / known_prices.round_us}, known_prices);
      before.learn_round(10);
      before.learn_model(6, {.ready_rounds = 0}, known_prices);
      before.learn_round(0);
      (void)before.chooses_model({.grade = 6, .ready = {40, 39}}, known_prices);
      before.learn_round(40);
    }
    draft_policy p(tenant);
    return p.chooses_model({.unread = 500, .tokens_to_come = 500}, known_prices);
  };
  EXPECT_TRUE(reads(3000));
  EXPECT_FALSE(reads(0.1));
}

TEST(draft_policy, counts_a_round_that_is_asked_for_twice_once) {
  draft_policy once, often;
  for (draft_policy* p : {&once, &often}) {
    for (int i = 0; i < 30; ++i) {
      for (int again = 0; again < (p == &often ? 5 : 1); ++again) {
        (void)p->chooses_model({.unread = 1e9}, known_prices);
      }
      p->learn_round(2);
    }
  }
  const draft_policy::place here{.unread = 10'000};
  EXPECT_EQ(rounds_before(once, here), rounds_before(often, here));
}

TEST(disagreement_record, believes_who_was_right_where_they_disagreed) {
  const std::vector<token> predicted = {1, 2, 3, 4};
  const std::vector<token> looked_up = {1, 2, 7, 4};
  disagreement_record r;
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
