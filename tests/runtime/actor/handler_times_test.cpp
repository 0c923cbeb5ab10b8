#include "runtime/actor/handler_times.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/actor/worker.hpp"
#include "tests/support/hand_link.hpp"

namespace redline::actor {
namespace {

constexpr microseconds minute{60'000'000};

TEST(handler_times, keep_the_longest_of_the_last_one_to_two_minutes) {
  auto& t = handler_times::of("keeper");
  instant now{10 * minute};
  t.note(microseconds{30}, now);
  t.note(microseconds{20}, now);
  EXPECT_EQ(t.longest(now).count(), 30);
  now += minute;
  EXPECT_EQ(t.longest(now).count(), 30);
  t.note(microseconds{5}, now);
  EXPECT_EQ(t.longest(now).count(), 30);
  now += minute;
  t.note(microseconds{6}, now);
  EXPECT_EQ(t.longest(now).count(), 6) << "the older minute is forgotten";
  EXPECT_EQ(t.longest(now + 3 * minute).count(), 0);
}

struct work_for {
  static constexpr message_id id{0x7f02};
  static constexpr std::string_view name = "work_for";
  std::int64_t us = 0;
  static constexpr auto fields(auto& self) { return std::tie(self.us); }
};

class slow_actor final : public actor_of<slow_actor> {
 public:
  using accepts = protocol<work_for>;
  slow_actor(actor_context& context, test::virtual_environment& clock) : actor_of(context), clock_(clock) {}
  void on(const work_for& m) { clock_.advance(microseconds{m.us}); }

 private:
  test::virtual_environment& clock_;
};

TEST(handler_times, are_taken_of_each_kind_of_actor) {
  test::virtual_environment clock(1);
  test::hand_link link;
  worker w(1, 1, link, clock);
  const auto who = w.add_temporary<slow_actor>(
      "slow one 17", {4, 4}, [&](actor_context& c) { return std::make_unique<slow_actor>(c, clock); });
  w.deliver(test::frame_of(who.where, {}, work_for{1234}));
  w.run_ready();
  const auto all = handler_times::read_all(clock.now());
  const auto own = std::find_if(all.begin(), all.end(), [](const auto& r) { return r.kind == "slow one"; });
  ASSERT_NE(own, all.end());
  EXPECT_EQ(own->longest.count(), 1234);
}

}  // namespace
}  // namespace redline::actor
