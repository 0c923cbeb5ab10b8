#include "transport/zmq/zmq_fabric.hpp"

#include <sys/resource.h>

#include "tests/transport/zmq/pool_fixture.hpp"

namespace redline::transport {
namespace {

TEST(zmq_fabric, carries_frames_between_workers_in_order) {
  zmq_fabric fabric(1);
  const auto a = fabric.make_link(1);
  const auto b = fabric.make_link(2);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(a->send(note(make_address(1, 2, 7), make_address(1, 1, 3), std::to_string(i))));
  }
  for (int i = 0; i < 1000; ++i) {
    const auto f = next(*b);
    ASSERT_TRUE(f);
    EXPECT_EQ(f->body, std::to_string(i));
  }
  EXPECT_FALSE(b->receive());
  // A worker can also send to itself.
  ASSERT_TRUE(a->send(note(make_address(1, 1, 7), make_address(1, 1, 3), "self")));
  ASSERT_TRUE(next(*a));
}

TEST(zmq_fabric, refuses_frames_to_workers_and_processes_it_does_not_know) {
  zmq_fabric fabric(1);
  const auto a = fabric.make_link(1);
  const auto no_worker = a->send(note(make_address(1, 9, 1), {}, ""));
  ASSERT_FALSE(no_worker);
  EXPECT_EQ(no_worker.error().code, errc::unreachable);
  EXPECT_EQ(a->send(note(make_address(1, 99, 1), {}, "")).error().code, errc::unreachable);
  const auto no_bridge = a->send(note(make_address(2, 1, 1), {}, ""));
  ASSERT_FALSE(no_bridge);
  EXPECT_EQ(no_bridge.error().code, errc::unreachable);
}

TEST(zmq_fabric, needs_no_descriptors_after_its_links_are_made) {
  zmq_fabric fabric(1, {.workers = {1, 2}});
  const auto first = fabric.make_link(1), second = fabric.make_link(2);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 3;  // standard input, output and error use these
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto there = first->send(note(make_address(1, 2, 7), make_address(1, 1, 5), "hello"));
  const auto back = second->send(note(make_address(1, 1, 5), make_address(1, 2, 7), "hello to you"));
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_TRUE(there) << there.error().describe();
  EXPECT_TRUE(back) << back.error().describe();
  EXPECT_EQ(next(*second)->body, note({}, {}, "hello").body);
  EXPECT_EQ(next(*first)->body, note({}, {}, "hello to you").body);
}

}  // namespace
}  // namespace redline::transport
