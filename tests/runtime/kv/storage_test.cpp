// The states of recurrent layers, with a model that computes from them. Whatever is drafted, taken back, preempted or
// shared, a run finds the state of exactly the tokens before it.

#include "runtime/kv/state_storage.hpp"

#include <gtest/gtest.h>

#include <random>

#include "runtime/base/assert.hpp"
#include "runtime/kv/cache.hpp"
#include "tests/support/rounds.hpp"

namespace redline::kv {
namespace {

constexpr std::uint32_t pages_count = 24, drafts_max = 6;

std::uint64_t step(std::uint64_t state, token t) {
  return state * 6364136223846793005ULL + static_cast<std::uint64_t>(t) + 1;
}
std::uint64_t state_of(std::span<const token> tokens) {
  std::uint64_t state = 7;
  for (const token t : tokens) state = step(state, t);
  return state;
}

/// The states and records that a target model has.
class recurrent_model {
 public:
  void copy(const std::vector<state_copy>& copies) {
    for (const auto& [from, to] : copies) states_[to] = states_[from];
  }
  /// Runs tokens after `before`, and returns whether the state that it found belongs to them.
  bool run(std::span<const token> before, std::span<const token> tokens, const state_use& use) {
    if (use.begins) states_[use.slot] = 7;
    std::uint64_t state = states_[use.slot];
    auto& records = records_[use.slot];
    auto all = std::vector<token>(records.begin(), records.begin() + use.records);
    all.insert(all.end(), tokens.begin(), tokens.begin() + use.kept);
    bool is_right = use.records > 0 || state == state_of(before);
    auto next = use.snapshots.begin();
    for (std::uint32_t i = 0; i < all.size(); ++i) {
      state = step(state, all[i]);
      if (i + 1 == use.records) is_right = state == state_of(before);
      if (next == use.snapshots.end() || next->rows != i + 1) continue;
      states_[next->slot] = state;
      ++next;
    }
    EXPECT_EQ(next, use.snapshots.end());
    records.assign(tokens.begin() + use.kept, tokens.end());
    states_[use.slot] = state;
    return is_right;
  }

 private:
  std::map<std::uint32_t, std::uint64_t> states_;
  std::map<std::uint32_t, std::vector<token>> records_;
};

struct one_sequence {
  std::vector<token> log;   // all tokens, computed or not
  std::uint32_t known = 0;  // how many of them have memory
};

pool_size size_with_states(std::uint32_t slots, std::uint32_t copies) {
  pool_size size(pages_count);
  size.state_slots = slots;
  size.state_copies = copies;
  size.state_records = drafts_max + 1;
  return size;
}

class recurrent_world {
 public:
  explicit recurrent_world(std::uint64_t seed) : chance_(seed), memory_(size_with_states(3, 3)) {}

  void act() {
    const std::uint64_t s = 1 + chance_() % 8;
    switch (chance_() % 8) {
      case 0:
        if (chance_() % 3 == 0) end(s);
        break;
      case 1:
        edit(s);
        break;
      case 2:
        preempt(s);
        break;
      default:
        pass();
    }
    memory_.check_integrity();
  }
  std::uint64_t passes = 0, adopted = 0, resumed = 0, recomputed = 0;

 private:
  void open(std::uint64_t s) {
    auto [at, is_new] = all_.try_emplace(s);
    if (is_new) {
      // A common beginning, then the sequence's own tokens.
      at->second.log.assign(32 * (1 + chance_() % 3), 1);
      at->second.log.insert(at->second.log.end(), chance_() % 40 + 1, static_cast<token>(10 + s));
      look(s);
    }
  }
  void look(std::uint64_t s) {
    one_sequence& q = all_.at(s);
    q.known = memory_.adopt({s}, {1}, std::span(q.log).first(q.log.size() - 1));
    adopted += q.known;
  }
  void end(std::uint64_t s) {
    if (all_.erase(s) == 0) return;
    memory_.release({s});
  }
  void preempt(std::uint64_t s) {
    if (!all_.contains(s)) return;
    memory_.release({s});
    look(s);
  }
  void edit(std::uint64_t s) {
    if (!all_.contains(s)) return;
    one_sequence& q = all_.at(s);
    const auto at = chance_() % q.log.size();
    q.log[at] = static_cast<token>(chance_() % 50);
    const auto wanted = static_cast<std::uint32_t>(std::min<std::size_t>(q.known, at));
    q.known = memory_.rewind({s}, wanted);
    EXPECT_LE(q.known, wanted);
    (q.known == wanted ? resumed : recomputed) += 1;
  }
  void pass() {
    for (std::uint64_t s = 1; s <= 8; ++s) {
      if (chance_() % 3 == 0) open(s);
    }
    std::vector<run_range> runs;
    amount left = memory_.free();
    for (auto& [s, q] : all_) {
      if (chance_() % 3 == 0) continue;
      const auto pending = static_cast<std::uint32_t>(q.log.size()) - q.known;
      const std::uint32_t chunk = std::min(pending, 40U);
      const growth takes = memory_.next({s});
      EXPECT_EQ(takes.drafts_max, drafts_max);
      const auto drafts = chunk == pending ? static_cast<std::uint32_t>(chance_() % (drafts_max + 1)) : 0;
      if (!takes.taken_by(chunk + drafts).fits(left)) continue;
      left -= takes.taken_by(chunk + drafts);
      runs.push_back({{s}, q.known, chunk + drafts, drafts});
    }
    const auto got = memory_.allocate(runs);
    ASSERT_TRUE(std::holds_alternative<allocated>(got));
    const auto& memory = std::get<allocated>(got);
    model_.copy(memory.copies);
    // Others may ask for what is known of a sequence while its pass is out.
    for (const run_range& run : runs) {
      const std::span<const token> log(all_.at(run.sequence.value).log);
      if (chance_() % 3 == 0) memory_.offer(run.sequence, {1}, log.first(run.first));
    }
    if (chance_() % 10 == 0) {  // the target could not compute it
      for (const run_range& run : runs) {
        memory_.put_back(run.sequence);
        EXPECT_EQ(memory_.rewind(run.sequence, run.first), run.first);
      }
      return;
    }
    ++passes;
    for (std::size_t i = 0; i < runs.size(); ++i) compute(runs[i], memory.runs[i].state);
  }
  void compute(const run_range& run, const state_use& use) {
    one_sequence& q = all_.at(run.sequence.value);
    const std::span<const token> log(q.log);
    std::vector<token> tokens(log.begin() + run.first, log.begin() + run.first + (run.count - run.drafts_count));
    std::vector<token> drafts(run.drafts_count);
    for (token& t : drafts) t = static_cast<token>(chance_() % 50);
    tokens.insert(tokens.end(), drafts.begin(), drafts.end());
    EXPECT_TRUE(model_.run(log.first(run.first), tokens, use)) << run.sequence.value << " at " << run.first;
    const auto accepted = static_cast<std::uint32_t>(chance_() % (run.drafts_count + 1));
    const bool is_whole = run.first + run.count - run.drafts_count == q.log.size();
    q.log.insert(q.log.end(), drafts.begin(), drafts.begin() + accepted);
    const std::uint32_t known = run.end() - run.drafts_count + accepted;
    memory_.note_computed(run.sequence);
    q.known = memory_.rewind(run.sequence, known);
    EXPECT_EQ(q.known, known) << "it can continue from any row of the last pass";
    if (is_whole) q.log.push_back(static_cast<token>(chance_() % 50));
    const std::uint32_t exact = std::min(q.known, static_cast<std::uint32_t>(q.log.size()));
    if (chance_() % 2 == 0) memory_.offer(run.sequence, {1}, std::span<const token>(q.log).first(exact));
    if (q.log.size() > 200) end(run.sequence.value);
  }

  std::mt19937_64 chance_;
  cache memory_;
  recurrent_model model_;
  std::map<std::uint64_t, one_sequence> all_;
};

TEST(state_storage, a_recurrent_state_is_that_of_the_tokens_before_it_whatever_happens) {
  std::uint64_t passes = 0, adopted = 0, resumed = 0, recomputed = 0;
  for (std::uint64_t seed = 1; seed <= test::rounds(40, 5); ++seed) {
    recurrent_world world(seed);
    for (int i = 0; i < 1500; ++i) {
      world.act();
      if (::testing::Test::HasFailure()) FAIL() << "seed " << seed << ", step " << i;
    }
    passes += world.passes;
    adopted += world.adopted;
    resumed += world.resumed;
    recomputed += world.recomputed;
  }
  EXPECT_GT(passes, 1000u);
  EXPECT_GT(adopted, 100u) << "cached prefixes with a snapshot at their end";
  EXPECT_GT(resumed, 100u);
  EXPECT_GT(recomputed, 100u) << "there is no state for the middle of a log";
}

TEST(state_storage, a_kind_bounds_what_a_run_may_draft_and_who_may_begin) {
  cache memory(size_with_states(1, 2));
  EXPECT_EQ(memory.next({1}).drafts_max, drafts_max);
  EXPECT_EQ(memory.next({1}).tokens_within(memory.free()), pages_count * page_tokens);
  ASSERT_TRUE(std::holds_alternative<allocated>(memory.allocate(std::vector<run_range>{{{1}, 0, 3, 0}})));
  EXPECT_EQ(memory.next({2}).tokens_within(memory.free()), 0u) << "the slot is taken, although there are pages";
  EXPECT_TRUE(std::holds_alternative<shortage>(memory.allocate(std::vector<run_range>{{{2}, 0, 3, 0}})));
  memory.release({1});
  EXPECT_TRUE(std::holds_alternative<allocated>(memory.allocate(std::vector<run_range>{{{2}, 0, 3, 0}})));
}

TEST(state_storage, keeps_a_state_at_the_end_of_a_prompt_and_one_in_its_answer) {
  cache memory(size_with_states(8, 4));
  std::vector<token> log(3 * page_tokens + 5, 1);
  const auto pass = [&](std::uint32_t first, std::uint32_t count, std::uint32_t drafts = 0) {
    const run_range run{{1}, first, count, drafts};
    const auto got = memory.allocate({&run, 1});
    memory.note_computed({1});
    return std::get<allocated>(got).runs[0].state;
  };
  const auto prompt = pass(0, 3 * page_tokens + 5);
  ASSERT_EQ(prompt.snapshots.size(), 1U) << "at the last border only";
  EXPECT_EQ(prompt.snapshots[0].rows, 3 * page_tokens);
  EXPECT_EQ(prompt.kept, 3 * page_tokens + 4) << "the last row may be computed again";
  EXPECT_TRUE(prompt.begins);
  memory.offer({1}, {1}, log);
  std::size_t copies = 0;
  for (std::uint32_t i = 0; i < 3 * page_tokens; ++i) {
    log.push_back(2);
    const auto use = pass(static_cast<std::uint32_t>(log.size()) - 1, 1);
    EXPECT_EQ(use.records, 1U);
    EXPECT_EQ(use.kept, 0U);
    copies += use.snapshots.size();
  }
  EXPECT_EQ(copies, 3U) << "at each border, into the slot of the one before";
  EXPECT_EQ(memory.free()[kind::state_slot], 7U) << "what no sequence needs is free";
  memory.offer({1}, {1}, log);
  memory.release({1});
  EXPECT_EQ(memory.adopt({2}, {1}, log), 6 * page_tokens) << "the answer, if the next turn has it as it was";
  memory.release({2});
  const std::vector<token> other(log.begin(), log.begin() + 3 * page_tokens + 5);
  EXPECT_EQ(memory.adopt({2}, {1}, other), 3 * page_tokens) << "the next turn begins behind the prompt";
}

TEST(state_storage, keeps_states_before_the_last_messages_instead_of_the_prompts_end) {
  cache memory(size_with_states(8, 4));
  const std::vector<token> log(8 * page_tokens, 1);
  const auto snapshots = [&](std::uint32_t first, std::uint32_t count) {
    const run_range run{{1}, first, count, 0, {2 * page_tokens + 3, 7 * page_tokens - 1}};
    const auto got = memory.allocate({&run, 1});
    memory.note_computed({1});
    std::vector<std::uint32_t> rows;
    for (const auto& s : std::get<allocated>(got).runs[0].state.snapshots) rows.push_back(s.rows);
    return rows;
  };
  EXPECT_EQ(snapshots(0, 4 * page_tokens), std::vector{2 * page_tokens});
  EXPECT_EQ(snapshots(4 * page_tokens, 4 * page_tokens), std::vector{2 * page_tokens + 1}) << "counted from the state";
  memory.offer({1}, {1}, log);
  memory.release({1});
  EXPECT_EQ(memory.adopt({2}, {1}, log), 6 * page_tokens);
  memory.release({2});
  EXPECT_EQ(memory.adopt({2}, {1}, std::span(log).first(5 * page_tokens)), 2 * page_tokens);
}

TEST(state_storage, a_copy_goes_that_saves_the_fewest_tokens_since_its_last_use) {
  pool_size size = size_with_states(1, 3);
  size.pages = 400;  // enough for all of the prefixes
  cache memory(size);
  const auto log_of = [](token t) { return std::vector<token>(12 * page_tokens + 2, t); };
  const auto compute = [&](std::uint64_t sequence, token t, std::vector<std::uint32_t> partings) {
    const auto count = partings.back() + 2;
    const run_range run{{sequence}, 0, count, 0, std::move(partings)};
    ASSERT_TRUE(std::holds_alternative<allocated>(memory.allocate({&run, 1})));
    memory.note_computed({sequence});
    const auto log = log_of(t);
    memory.offer({sequence}, {1}, std::span(log).first(count));
    memory.release({sequence});
  };
  const auto found = [&](token t) {
    const std::uint32_t length = memory.adopt({99}, {1}, log_of(t));
    memory.release({99});
    return length / page_tokens;
  };
  compute(1, 1, {10 * page_tokens, 12 * page_tokens});
  compute(2, 2, {5 * page_tokens});
  compute(3, 3, {5 * page_tokens});
  EXPECT_EQ(found(1), 10U) << "the copy at 12 saved only two pages, that at 10 saves ten";
  EXPECT_EQ(found(2), 5U);
  EXPECT_EQ(found(3), 5U);
  for (std::uint64_t i = 4; i < 6; ++i) compute(i, static_cast<token>(i), {5 * page_tokens});
  EXPECT_EQ(found(1), 10U) << "worth more than newer ones";
  for (std::uint64_t i = 6; i < 12; ++i) compute(i, static_cast<token>(i), {5 * page_tokens});
  memory.check_integrity();
  EXPECT_EQ(found(11), 5U);
  for (std::uint64_t i = 12; i < 20; ++i) compute(i, static_cast<token>(i), {5 * page_tokens});
  EXPECT_EQ(found(1), 0U) << "but not for ever without a use";
}

TEST(state_storage, a_cached_page_with_a_state_replaces_one_whose_state_is_gone) {
  cache memory(size_with_states(1, 1));
  const std::vector<token> log(page_tokens + 2, 1), others(page_tokens + 2, 2);
  const auto compute = [&](std::uint64_t sequence, const std::vector<token>& tokens) {
    const run_range run{{sequence}, 0, page_tokens + 2, 0};
    ASSERT_TRUE(std::holds_alternative<allocated>(memory.allocate({&run, 1})));
    memory.note_computed({sequence});
    memory.offer({sequence}, {1}, tokens);
    memory.release({sequence});
  };
  compute(1, log);
  compute(2, others);  // takes the slot of the first one's state
  EXPECT_EQ(memory.adopt({3}, {1}, log), 0U) << "the page is cached, its state is not";
  memory.release({3});
  compute(4, log);
  EXPECT_EQ(memory.adopt({5}, {1}, log), page_tokens);
}

TEST(state_storage, a_copy_is_offered_only_once_it_is_made) {
  cache memory(size_with_states(3, 1));
  const std::vector<token> log(page_tokens + 2, 1);
  const auto pass = [&](std::uint32_t first, std::uint32_t count) {
    const run_range run{{1}, first, count, 0};
    ASSERT_TRUE(std::holds_alternative<allocated>(memory.allocate({&run, 1})));
  };
  pass(0, page_tokens);  // whose last row is a record: the state is that of one token less
  memory.note_computed({1});
  pass(page_tokens, 2);  // makes the copy at the page's border
  memory.offer({1}, {1}, std::span(log).first(page_tokens));
  EXPECT_EQ(memory.adopt({2}, {1}, log), 0U) << "the page is computed, but the copy is not made yet";
  memory.put_back({1});
  EXPECT_EQ(memory.rewind({1}, page_tokens), page_tokens);
  pass(page_tokens, 2);
  memory.note_computed({1});
  memory.offer({1}, {1}, std::span(log).first(page_tokens));
  EXPECT_EQ(memory.adopt({3}, {1}, log), page_tokens);
}

TEST(state_storage, an_edit_within_the_state_begins_again) {
  cache memory(size_with_states(1, 1));
  const run_range run{{1}, 0, 50, 0};
  ASSERT_TRUE(std::holds_alternative<allocated>(memory.allocate({&run, 1})));
  memory.splice({1}, {.keep_count = 50, .at = 10, .removed_count = 5, .shift = -5});
  const run_range next{{1}, 45, 1, 0};
  EXPECT_TRUE(std::holds_alternative<kv_lost>(memory.allocate({&next, 1})));
}

}  // namespace
}  // namespace redline::kv
