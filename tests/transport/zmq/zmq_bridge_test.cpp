#include "transport/zmq/zmq_bridge.hpp"

#include <gtest/gtest.h>

#include "runtime/actor/codec.hpp"
#include "runtime/actor/system_messages.hpp"
#include "tests/transport/zmq/pool_fixture.hpp"
#include "transport/zmq/zmq_broker.hpp"
#include "transport/zmq/zmq_fabric.hpp"
#include "transport/zmq/zmq_parts.hpp"

namespace redline::transport {
namespace {

TEST(zmq_bridge, carries_a_part_of_what_waits_in_a_turn) {
  zmq::context_t context;
  zmq::socket_t outbound(context, ZMQ_PULL), from_inside(context, ZMQ_PUSH);
  outbound.set(zmq::sockopt::rcvhwm, 0);
  from_inside.set(zmq::sockopt::sndhwm, 0);
  from_inside.set(zmq::sockopt::linger, 0);
  outbound.bind("inproc://outbound");
  from_inside.connect("inproc://outbound");
  std::size_t came_back = 0;
  zmq_bridge bridge(context, {1, 7}, {}, {}, std::move(outbound),
                    {.has_worker = [](std::uint16_t) { return true; },
                     .deliver =
                         [&](const envelope& head, std::string_view) {
                           came_back += head.id == actor::undeliverable::id ? 1 : 0;
                           return true;
                         }});
  // No route leads to process 2, so each frame returns to its sender.
  const envelope head{.to = make_address(2, 1, 5), .from = make_address(1, 1, 5), .id = {0x0f01}};
  constexpr std::size_t all = 10'000;
  for (std::size_t i = 0; i < all; ++i) ASSERT_TRUE(send_parts(from_inside, actor::encode(head), "x"));
  std::size_t turns = 0;
  for (std::size_t carried = 0; carried < all; ++turns) {
    const std::size_t now = bridge.take_turn();
    ASSERT_GT(now, 0U);
    ASSERT_LE(now, 256U);
    carried += now;
    EXPECT_EQ(came_back, carried);
  }
  EXPECT_GE(turns, all / 256);
}

TEST(zmq_bridge, tells_whether_a_broker_takes_its_process) {
  const scratch directory{0700};
  zmq_fabric fabric(1);
  const auto link = fabric.make_link(1);
  bridge_options options;
  options.joins = {directory.endpoint()};
  options.missed_after = microseconds{50'000};
  ASSERT_TRUE(fabric.start_bridge(options, {make_address(1, 1, 5)}));
  const auto absent = next_news(*link);
  EXPECT_EQ(absent.process, 0U);
  EXPECT_FALSE(absent.reachable);
  EXPECT_NE(absent.why_not.find("the broker at " + directory.endpoint() + " does not answer"), std::string::npos);
  zmq_broker broker;
  ASSERT_TRUE(broker.start({.listens = {directory.endpoint()}}));
  bool has_joined = false;
  for (const auto end = std::chrono::steady_clock::now() + patience;
       !has_joined && std::chrono::steady_clock::now() < end;) {
    const auto f = link->receive();
    if (!f) link->wait(microseconds{10'000});
    has_joined = f && is_joining(*f);
  }
  EXPECT_TRUE(has_joined);
}

}  // namespace
}  // namespace redline::transport
