#include "actors/http/http_replies.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/actor/worker.hpp"
#include "runtime/base/size_limits.hpp"
#include "tests/support/hand_link.hpp"

namespace redline::actors {
namespace {

using ::testing::HasSubstr;

constexpr auto http_where = actor::make_address(1, 2, 8);

class replier final : public actor::actor_of<replier> {
 public:
  using accepts = actor::protocol<answer_part_due>;
  explicit replier(actor::actor_context& context) : actor_of(context), replies(context, http_where, std::make_shared<gateway_probe>()) {}
  void on(const answer_part_due& m) { replies.on(m); }
  http_replies replies;
};

class http_replies_test : public testing::Test {
 protected:
  test::virtual_environment env;
  test::hand_link link;
  actor::worker core{1, 1, link, env};
  http_replies& replies =
      core.find(core.add<replier>(2, "gateway", {8, 8},
                                  [](actor::actor_context& c) { return std::make_unique<replier>(c); }))
          ->replies;
  void next_part() {
    core.fire_timers();
    core.run_ready();
  }
  caller who{.exchange = 5, .request_id = "r"};
};

TEST_F(http_replies_test, sends_a_long_answer_in_parts_that_fit_messages) {
  std::string body;
  for (std::uint32_t n = 0; body.size() < sizes::string_bytes_max + 1000; ++n) body += std::to_string(n) + ",";
  replies.respond(who, 200, body);
  auto head = link.take<http_respond>();
  ASSERT_TRUE(head);
  EXPECT_TRUE(head->more);
  std::string all = head->body;
  EXPECT_EQ(head->whole_bytes, body.size());
  for (bool more = true; more; next_part()) {
    const auto part = link.take<http_body>();
    ASSERT_TRUE(part) << "each part can be decoded";
    ASSERT_TRUE(link.sent.empty()) << "one part per handler";
    all += part->data;
    more = part->more;
  }
  EXPECT_TRUE(all == body);
  EXPECT_TRUE(link.sent.empty());
}

TEST_F(http_replies_test, forgets_an_answer_whose_client_left_or_that_failed) {
  for (const bool fails : {false, true}) {
    replies.respond(who, 200, std::string(3 * sizes::http_answer_part_bytes_max, 'x'));
    EXPECT_FALSE(replies.idle());
    link.sent.clear();
    if (fails)
      replies.fail(who.exchange, api::error_of({errc::internal, ""}));
    else
      EXPECT_TRUE(replies.client_left(who.exchange));
    next_part();
    EXPECT_FALSE(link.take<http_body>());
    EXPECT_TRUE(replies.idle());
  }
}

TEST_F(http_replies_test, refuses_an_answer_that_is_too_large_to_be_sent_whole) {
  replies.respond(who, 200, std::string(sizes::http_answer_bytes_max + 1, 'x'));
  const auto refused = link.take<http_respond>();
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->status, 500u);
  EXPECT_THAT(refused->body, HasSubstr("answer_too_large"));
}

}  // namespace
}  // namespace redline::actors
