#include "transport/zmq/zmq_bridge.hpp"

#include <gtest/gtest.h>

#include "runtime/actor/codec.hpp"
#include "runtime/actor/system_messages.hpp"
#include "tests/transport/zmq/pool_fixture.hpp"
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
  // Nobody leads to process 2: each frame comes back to its sender.
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

}  // namespace
}  // namespace redline::transport
