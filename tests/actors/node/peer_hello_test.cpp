#include "actors/node/peer_hello.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/messages/all_messages.hpp"
#include "actors/node/engine.hpp"

namespace redline::actors {
namespace {

using ::testing::HasSubstr;
using topology::draft_process, topology::front_process, topology::target_process;

const peer_hello front{.model = 1, .vocabulary = 2, .context = 4096, .running_max = 64, .waiting_max = 256};
const peer_hello target{.model = 1,
                        .vocabulary = 2,
                        .numerics = "exact kernels and a KV cache of f16",
                        .context = 4096,
                        .running_max = 64,
                        .waiting_max = 256};

TEST(peer_hello, processes_that_fit_work_together) {
  EXPECT_TRUE(peer_check(front_process, front).check(target_process, target));
  EXPECT_TRUE(peer_check(target_process, target).check(front_process, front));
  EXPECT_TRUE(peer_check(front_process, front).check(draft_process, {.vocabulary = 2}));
  EXPECT_TRUE(peer_check(draft_process, {.vocabulary = 2}).check(front_process, front));
}

TEST(peer_hello, what_does_not_fit_is_refused_by_name_on_both_sides) {
  const auto other = [](auto change) {
    peer_hello changed = target;
    change(changed);
    return changed;
  };
  const std::pair<peer_hello, std::string> table[] = {
      {other([](auto& h) { h.model = 9; }), "--model"},
      {other([](auto& h) { h.vocabulary = 9; }), "vocabulary"},
      {other([](auto& h) { h.context = 2048; }), "--context is 2048 and ours 4096"},
      {other([](auto& h) { h.running_max = 8; }), "--running-max"},
      {other([](auto& h) { h.waiting_max = 8; }), "--waiting-max"},
  };
  for (const auto& [worker, word] : table) {
    const auto no = peer_check(front_process, front).check(target_process, worker);
    ASSERT_FALSE(no) << word;
    EXPECT_THAT(no.error().context, HasSubstr(word));
    EXPECT_FALSE(peer_check(target_process, worker).check(front_process, front)) << word;
  }
}

TEST(peer_hello, a_target_worker_after_another_must_give_the_same_bits) {
  peer_check check(front_process, front);
  auto other = target;
  other.numerics = "exact kernels and a KV cache of bf16";
  ASSERT_TRUE(check.check(target_process, target));
  const auto no = check.check(target_process, other);
  ASSERT_FALSE(no);
  EXPECT_THAT(no.error().context, HasSubstr("bf16"));
  EXPECT_TRUE(check.check(target_process, target)) << "the same again";
}

TEST(peer_hello, processes_of_unknown_roles_and_hellos_that_are_none_are_refused) {
  EXPECT_FALSE(peer_check(front_process, front).check(7, target));
  EXPECT_FALSE(peer_check(target_process, target).check(draft_process, {.vocabulary = 2}));
  EXPECT_FALSE(make_peer_rules(front_process, front).check(target_process, "")) << "of an older version";
}

TEST(peer_hello, no_process_may_send_what_only_actors_beside_the_receiver_do) {
  int allowed = 0;
  for_each_message([&]<class M>(std::type_identity<M>) {
    for (std::uint16_t p = 0; p < 5; ++p) allowed += may_send(p, M::id) ? 1 : 0;
    EXPECT_LE(may_send(front_process, M::id) + may_send(target_process, M::id) + may_send(draft_process, M::id), 1)
        << M::name;
  });
  EXPECT_EQ(allowed, 14);
  EXPECT_FALSE(may_send(target_process, drain_gateway::id));
  EXPECT_FALSE(may_send(draft_process, verified::id));
  EXPECT_FALSE(may_send(front_process, batch_done::id));
}

}  // namespace
}  // namespace redline::actors
