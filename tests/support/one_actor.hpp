#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "runtime/actor/worker.hpp"
#include "tests/support/hand_link.hpp"

namespace redline::test {

/// A fixture with one actor, for which the test acts as all others: `inject` gives it a message, `expect` takes its
/// messages in the order sent. What it sends to itself arrives at once.
template<class A>
class one_actor : public ::testing::Test {
 protected:
  one_actor(actor::process_number process, std::uint16_t worker) : w(process, worker, wire, env) {}

  void run() {
    for (;;) {
      while (w.run_ready()) {
      }
      const auto own = std::ranges::find_if(wire.sent, [&](const actor::frame& f) { return f.head.to == who.where; });
      if (own == wire.sent.end()) return;
      auto f = std::move(*own);
      wire.sent.erase(own);
      w.deliver(std::move(f));
    }
  }
  template<actor::message M>
  void inject(actor::address from, const M& m) {
    w.deliver(frame_of(who.where, from, m));
    run();
  }
  template<actor::message M>
  M expect(actor::address to) {
    auto m = wire.take<M>();
    EXPECT_TRUE(m) << "expected " << M::name << ", found "
                   << (wire.sent.empty() ? 0 : static_cast<int>(wire.sent.front().head.id.value));
    EXPECT_EQ(wire.last_to, to);
    return m.value_or(M{});
  }
  /// Advances the clock by `time`, `step` at a time.
  void pass(microseconds time, microseconds step = microseconds{50'000}) {
    for (const instant end = env.now() + time; env.now() < end; run()) {
      env.advance(step);
      (void)w.fire_timers();
    }
  }
  /// Null if the actor has ended.
  [[nodiscard]] auto* self() { return w.find(who); }

  virtual_environment env;
  hand_link wire;
  actor::worker w;
  actor::actor_ref<A> who;
};

}  // namespace redline::test
