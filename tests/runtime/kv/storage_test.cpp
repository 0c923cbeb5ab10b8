// A third kind of memory with the verbs of `storage`: recurrent state, with a model that computes from it. Whatever is
// drafted, taken back, preempted or shared, a run finds the state of exactly the tokens before it.

#include "runtime/kv/storage.hpp"

#include <gtest/gtest.h>

#include <random>

#include "runtime/base/assert.hpp"
#include "runtime/kv/cache.hpp"
#include "tests/support/rounds.hpp"
#include "tests/support/slot_storage.hpp"

namespace redline::kv {
namespace {

constexpr std::uint32_t pages_count = 24, slots_count = 5, drafts_max = 6;
constexpr std::uint64_t poison = 0xdead;

std::uint64_t step(std::uint64_t state, token t) {
  return state * 6364136223846793005ULL + static_cast<std::uint64_t>(t) + 1;
}
std::uint64_t state_of(std::span<const token> tokens) {
  std::uint64_t state = 7;
  for (const token t : tokens) state = step(state, t);
  return state;
}

/// The states and records that a target model would have.
class recurrent_model {
 public:
  explicit recurrent_model(test::slot_storage& slots) : slots_(slots) {}

  /// Runs tokens after `before`, and returns whether the state that it found belongs to them.
  bool run(sequence_id sequence, std::span<const token> before, std::span<const token> tokens) {
    catch_up();
    const auto& r = slots_.runs.at(sequence.value);
    if (r.base == 0 && r.records == 0) states_[r.slot] = 7;  // a sequence begins
    std::uint64_t state = states_[r.slot];
    for (std::uint32_t i = 0; i < r.records; ++i) state = step(state, records_[sequence.value].at(i));
    const bool is_right = state == state_of(before) && r.base + r.records == before.size();
    auto& record = records_[sequence.value];
    record.clear();
    std::uint32_t length = r.base + r.records;
    for (const token t : tokens) {
      if (length >= r.base_after) record.push_back(t);
      if (length < r.base_after) state = step(state, t);
      ++length;
      if (const auto at = r.snapshots.find(length); at != r.snapshots.end()) states_[at->second] = state;
    }
    states_[r.slot] = state;
    return is_right;
  }
  /// Applies the copies between slots.
  void catch_up() {
    for (const auto& [from, to] : slots_.copies) states_[to] = states_[from];
    slots_.copies.clear();
  }
  void poison_freed() {
    catch_up();
    for (const std::uint32_t slot : slots_.freed) states_[slot] = poison;
    slots_.freed.clear();
  }

 private:
  test::slot_storage& slots_;
  std::map<std::uint32_t, std::uint64_t> states_;
  std::map<std::uint64_t, std::vector<token>> records_;
};

struct one_sequence {
  std::vector<token> log;   // all tokens, computed or not
  std::uint32_t known = 0;  // how many of them have memory
};

class recurrent_world {
 public:
  explicit recurrent_world(std::uint64_t seed) : chance_(seed), memory_(pages_count) {
    auto slots = std::make_unique<test::slot_storage>(slots_count, drafts_max);
    slots_ = slots.get();
    memory_.add(std::move(slots));
    model_.emplace(*slots_);
  }

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
    model_->poison_freed();
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
    model_->catch_up();
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
    ++passes;
    for (const run_range& run : runs) compute(run);
  }
  void compute(const run_range& run) {
    one_sequence& q = all_.at(run.sequence.value);
    const std::span<const token> log(q.log);
    std::vector<token> tokens(log.begin() + run.first, log.begin() + run.first + (run.count - run.drafts_count));
    std::vector<token> drafts(run.drafts_count);
    for (token& t : drafts) t = static_cast<token>(chance_() % 50);
    tokens.insert(tokens.end(), drafts.begin(), drafts.end());
    EXPECT_TRUE(model_->run(run.sequence, log.first(run.first), tokens)) << run.sequence.value << " at " << run.first;
    const auto accepted = static_cast<std::uint32_t>(chance_() % (run.drafts_count + 1));
    const bool is_whole = run.first + run.count - run.drafts_count == q.log.size();
    q.log.insert(q.log.end(), drafts.begin(), drafts.begin() + accepted);
    const std::uint32_t known = run.end() - run.drafts_count + accepted;
    q.known = memory_.rewind(run.sequence, known);
    EXPECT_EQ(q.known, known) << "it can continue from any row of the last pass";
    if (is_whole) q.log.push_back(static_cast<token>(chance_() % 50));
    const std::uint32_t exact = std::min(q.known, static_cast<std::uint32_t>(q.log.size()));
    if (chance_() % 2 == 0) memory_.offer(run.sequence, {1}, std::span<const token>(q.log).first(exact));
    if (q.log.size() > 200) end(run.sequence.value);
  }

  std::mt19937_64 chance_;
  cache memory_;
  test::slot_storage* slots_ = nullptr;
  std::optional<recurrent_model> model_;
  std::map<std::uint64_t, one_sequence> all_;
};

TEST(storage, a_recurrent_state_is_that_of_the_tokens_before_it_whatever_happens) {
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

TEST(storage, a_kind_bounds_what_a_run_may_draft_and_who_may_begin) {
  cache memory(pages_count);
  memory.add(std::make_unique<test::slot_storage>(1, 4));
  EXPECT_EQ(memory.next({1}).drafts_max, 4u);
  EXPECT_EQ(memory.next({1}).tokens_within(memory.free()), pages_count * page_tokens);
  ASSERT_TRUE(std::holds_alternative<allocated>(memory.allocate(std::vector<run_range>{{{1}, 0, 3, 0}})));
  EXPECT_EQ(memory.next({2}).tokens_within(memory.free()), 0u) << "the slot is taken, although there are pages";
  EXPECT_TRUE(std::holds_alternative<shortage>(memory.allocate(std::vector<run_range>{{{2}, 0, 3, 0}})));
  memory.release({1});
  EXPECT_TRUE(std::holds_alternative<allocated>(memory.allocate(std::vector<run_range>{{{2}, 0, 3, 0}})));
}

}  // namespace
}  // namespace redline::kv
