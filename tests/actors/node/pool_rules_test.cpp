#include "actors/node/pool_rules.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "actors/messages/all_messages.hpp"
#include "runtime/base/hash.hpp"
#include "tests/support/message_sample.hpp"
#include "tests/support/test_data.hpp"

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
  const auto role = [&](process_role r) {
    return *rules.read_role(actor::encode(process_card{.role = r, .protocol = pool_protocol}));
  };
  const auto gateway = role(process_role::gateway), worker = role(process_role::worker);
  EXPECT_TRUE(rules.may_meet(gateway, worker));
  EXPECT_TRUE(rules.may_meet(worker, gateway));
  EXPECT_FALSE(rules.may_meet(gateway, gateway));
  EXPECT_FALSE(rules.may_meet(worker, worker));
}

TEST(pool_rules, a_card_that_is_none_is_refused) {
  EXPECT_THAT(make_pool_rules().read_role("\xc1").error().context, HasSubstr("same version"));
}

TEST(pool_rules, a_process_of_another_protocol_is_refused_whatever_its_role_and_both_numbers_are_named) {
  const std::string ours = std::to_string(pool_protocol) + " (redline ";
  for (const auto role : {process_role::gateway, process_role::worker}) {
    for (const std::uint32_t protocol : {0U, pool_protocol - 1, pool_protocol + 1, ~0U}) {
      const process_card card{.role = role, .version = "9.8.7+g12\n", .protocol = protocol};
      const auto read = make_pool_rules().read_role(actor::encode(card));
      ASSERT_FALSE(read) << protocol;
      EXPECT_THAT(read.error().context, HasSubstr("found " + std::to_string(protocol) + " (redline 9.8.7+g12?)"));
      EXPECT_THAT(read.error().context, HasSubstr(ours));
      EXPECT_THAT(read.error().context, HasSubstr("run the same version"));
    }
  }
}

/// A version without the protocol field sends a card whose last field is missing.
TEST(pool_rules, a_card_without_a_protocol_is_one_of_protocol_0) {
  const std::string whole = actor::encode(process_card{.protocol = 0});
  ASSERT_EQ(static_cast<unsigned char>(whole[0]), 0xdcU) << "an array with 16 bits for its length";
  std::string old = whole.substr(0, whole.size() - 1);
  --old[2];
  EXPECT_THAT(make_pool_rules().read_role(old).error().context, HasSubstr("found 0 (redline "));
}

// Raise pool_protocol, then run with REDLINE_GOLDEN=write to rewrite the file. If messages change again before that
// number is in use anywhere, restore the file from the repository first.
TEST(pool_rules, the_protocol_is_raised_when_what_processes_say_to_each_other_changes) {
  fnv1a said;
  for_each_message([&]<class M>(std::type_identity<M>) {
    if (!may_send(process_role::gateway, M::id) && !may_send(process_role::worker, M::id)) return;
    said.add(std::to_string(M::id.value) + " " + actor::encode(test::sample_of<M>(7)) + "\n");
  });
  said.add(actor::encode(test::sample_of<process_card>(7)));
  const std::string path = test::source_path("tests/golden/protocol.txt");
  std::uint32_t known = 0;
  std::uint64_t hash = 0;
  std::istringstream(test::read_file(path)) >> known >> std::hex >> hash;
  if (known == pool_protocol) {
    EXPECT_EQ(hash, said.value()) << "raise pool_protocol (actors/messages/pool_messages.hpp): messages have changed";
    return;
  }
  const char* mode = std::getenv("REDLINE_GOLDEN");
  ASSERT_TRUE(mode != nullptr && std::string_view(mode) == "write") << "write " << path << " with REDLINE_GOLDEN=write";
  std::ofstream(path) << pool_protocol << " " << std::hex << said.value() << "\n";
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
