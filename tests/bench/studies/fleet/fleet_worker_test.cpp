#include "bench/studies/fleet/fleet_worker.hpp"

#include <gtest/gtest.h>

namespace redline::studies {
namespace {

class a_fleet_worker : public ::testing::Test {
 protected:
  static fleet_worker::question ask(std::uint64_t sequence, std::uint32_t tokens, std::uint64_t conversation) {
    return {.sequence = {sequence},
            .tenant = {1},
            .round = {1},
            .tail = tokens,
            .tokens_max = tokens + 10,
            .kin = {conversation, 999, 64}};
  }
  /// Runs passes until the sequence has its first token.
  void answer_all() {
    while (const auto* plan = worker_.begin_pass(now_)) {
      std::vector<scheduler::run_answer> answers;
      for (const auto& run : plan->runs) {
        answers.push_back({0, run.wants_logits ? std::vector<token>{0} : std::vector<token>{}});
      }
      now_ += microseconds{1000};
      (void)worker_.end_pass(answers, microseconds{1000}, now_);
      worker_.check_integrity();
    }
  }
  void serve(std::uint64_t sequence, std::uint32_t tokens, std::uint64_t conversation) {
    (void)worker_.submit(ask(sequence, tokens, conversation), now_);
    answer_all();
    worker_.release({sequence});
    worker_.check_integrity();
  }

  instant now_;
  fleet_worker worker_{{.running_max = 4, .waiting_max = 4, .tokens_max = 1024, .pages_count = 64}, {}, 0};
};

TEST_F(a_fleet_worker, keeps_what_a_conversation_had_computed_and_what_its_tenant_shares) {
  serve(1, 320, 7);
  EXPECT_EQ(worker_.submit(ask(2, 500, 7), now_).cached, 320U);
  answer_all();
  EXPECT_EQ(worker_.submit(ask(3, 500, 8), now_).cached, 64U);
}

TEST_F(a_fleet_worker, always_computes_the_last_token_of_a_prompt) {
  serve(1, 320, 7);
  EXPECT_EQ(worker_.submit(ask(2, 320, 7), now_).cached, 288U);
}

TEST_F(a_fleet_worker, forgets_the_longest_unused_conversation_when_pages_are_needed) {
  serve(1, 960, 1);
  serve(2, 960, 2);
  serve(3, 960, 3);
  EXPECT_EQ(worker_.submit(ask(4, 1000, 3), now_).cached, 960U);
  answer_all();
  EXPECT_EQ(worker_.submit(ask(5, 1000, 1), now_).cached, 64U);
}

TEST_F(a_fleet_worker, refuses_a_question_when_all_places_are_taken) {
  for (std::uint64_t s = 1; s <= 8; ++s) {
    EXPECT_EQ(worker_.submit(ask(s, 32, s), now_).outcome, scheduler::submit_outcome::taken);
  }
  EXPECT_EQ(worker_.submit(ask(9, 32, 9), now_).outcome, scheduler::submit_outcome::queue_full);
  EXPECT_EQ(worker_.running_count(), 4U);
  EXPECT_EQ(worker_.waiting_count(), 4U);
}

}  // namespace
}  // namespace redline::studies
