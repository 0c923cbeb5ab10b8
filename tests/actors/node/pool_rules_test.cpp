#include "actors/node/pool_rules.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/messages/all_messages.hpp"

namespace redline::actors {
namespace {

using ::testing::HasSubstr;

const own_model own{.model = 1, .vocabulary = 2};
const process_card target{.has_target = true, .model = 1, .vocabulary = 2, .context = 4096};

TEST(pool_rules, a_worker_that_does_not_fit_is_refused_by_name) {
  EXPECT_EQ(why_unfit(own, target), std::nullopt);
  EXPECT_EQ(why_unfit(own, {.has_draft = true, .vocabulary = 2}), std::nullopt);
  const auto other = [](auto change) {
    process_card changed = target;
    change(changed);
    return changed;
  };
  const std::pair<process_card, std::string> table[] = {
      {other([](auto& c) { c.model = 9; }), "--model"},
      {other([](auto& c) { c.vocabulary = 9; }), "vocabulary"},
      {{.has_draft = true, .vocabulary = 9}, "vocabulary"},
  };
  for (const auto& [card, word] : table) EXPECT_THAT(why_unfit(own, card).value_or("fits"), HasSubstr(word));
}

TEST(pool_rules, gateways_work_with_workers_only) {
  const auto rules = make_pool_rules();
  const auto role = [&](process_role r) { return *rules.read_role(actor::encode(process_card{.role = r})); };
  const auto gateway = role(process_role::gateway), worker = role(process_role::worker);
  EXPECT_TRUE(rules.may_meet(gateway, worker));
  EXPECT_TRUE(rules.may_meet(worker, gateway));
  EXPECT_FALSE(rules.may_meet(gateway, gateway));
  EXPECT_FALSE(rules.may_meet(worker, worker));
}

TEST(pool_rules, a_card_that_is_none_is_refused) {
  EXPECT_THAT(make_pool_rules().read_role("\xc1").error().context, HasSubstr("same version"));
}

TEST(pool_rules, no_role_sends_what_another_does_and_none_the_controls_of_a_process) {
  for_each_message([]<class M>(std::type_identity<M>) {
    const bool by_gateway = may_send(process_role::gateway, M::id), by_worker = may_send(process_role::worker, M::id);
    EXPECT_FALSE(by_gateway && by_worker) << M::name;
    if (actor::is_control<M>) {
      EXPECT_FALSE(by_gateway || by_worker) << M::name;
    }
  });
  EXPECT_TRUE(may_send(process_role::gateway, verify_run::id));
  EXPECT_TRUE(may_send(process_role::worker, verified::id));
  EXPECT_FALSE(may_send(process_role::worker, drain_gateway::id));
  EXPECT_FALSE(may_send(process_role::gateway, actor::stop_worker::id));
}

}  // namespace
}  // namespace redline::actors
