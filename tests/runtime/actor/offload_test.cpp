#include "runtime/actor/offload.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

#include "runtime/actor/worker.hpp"
#include "tests/support/actor_world.hpp"

namespace redline::actor {
namespace {

struct work_wanted {
  static constexpr message_id id{0x7f01};
  static constexpr std::string_view name = "work_wanted";
  std::int32_t number = 0;
  static constexpr auto fields(auto& self) { return std::tie(self.number); }
};

/// Doubles numbers on another thread, where a negative one throws.
class doubler final : public actor_of<doubler> {
 public:
  using accepts = protocol<work_wanted, job_done>;
  doubler(actor_context& context, std::vector<std::string>& heard)
      : actor_of(context), work_(context, nullptr), heard_(heard) {}

  void on(const work_wanted& m) {
    const auto job = [number = m.number] {
      if (number < 0) throw std::runtime_error("negative");
      return 2 * number;
    };
    last_ = *work_.run({}, 1, job, [this](result<int> done) {
      heard_.push_back(done ? std::to_string(*done) : done.error().describe());
    });
  }
  void on(const job_done& m) { work_.on(m); }

  void drop_last() { work_.drop(last_); }
  [[nodiscard]] bool idle() const { return work_.idle(); }

 private:
  offload work_;
  std::vector<std::string>& heard_;
  std::uint64_t last_ = 0;
};

class offload_test : public testing::Test {
 protected:
  offload_test() {
    who = world.add_worker(1, 1).add<doubler>(2, "doubler", {8, 8},
                                              [this](actor_context& c) { return std::make_unique<doubler>(c, heard); });
  }
  void ask(std::int32_t number) { world.send(who.where, work_wanted{number}); }
  doubler& actor() { return *world.worker_at(who.where).find(who); }

  std::vector<std::string> heard;
  test::actor_world world{1};
  actor_ref<doubler> who;
};

TEST_F(offload_test, gives_what_the_job_gave_in_a_later_message) {
  ask(21);
  ASSERT_TRUE(world.run_until([&] { return !heard.empty(); }, microseconds{1'000'000}));
  EXPECT_EQ(heard, std::vector<std::string>{"42"});
  EXPECT_TRUE(actor().idle());
}

TEST_F(offload_test, says_what_a_job_threw) {
  ask(-1);
  world.run_for(microseconds{10'000});
  ASSERT_EQ(heard.size(), 1U);
  EXPECT_NE(heard[0].find("negative"), std::string::npos);
}

TEST_F(offload_test, says_nothing_of_a_job_that_was_dropped) {
  ask(1);
  (void)world.run_until([&] { return !actor().idle(); }, microseconds{1'000'000});
  actor().drop_last();
  world.run_for(microseconds{10'000});
  EXPECT_TRUE(heard.empty());
}

TEST_F(offload_test, of_an_actor_that_died_is_nothing_to_its_successor) {
  ask(1);
  (void)world.run_until([&] { return !actor().idle(); }, microseconds{1'000'000});
  world.restart(who.where);
  world.run_for(microseconds{10'000});
  EXPECT_TRUE(heard.empty());
}

}  // namespace
}  // namespace redline::actor
