#include "transport/zmq_fabric.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <functional>

#include "runtime/actor/system_messages.hpp"

namespace redline::transport {
namespace {

using actor::envelope;
using actor::frame;
using actor::make_address;

constexpr auto patience = std::chrono::seconds(20);

/// A directory of our own under the temporary one.
class scratch {
 public:
  explicit scratch(mode_t mode) {
    std::string name = (std::filesystem::temp_directory_path() / "redline-test-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
    ::chmod(path_.c_str(), mode);
  }
  ~scratch() { std::filesystem::remove_all(path_); }
  [[nodiscard]] std::string endpoint() const { return "ipc://" + path_ + "/bus"; }

 private:
  std::string path_;
};

frame note(actor::address to, actor::address from, std::string body) {
  return {envelope{.to = to, .from = from, .id = {0x0f01}}, std::move(body)};
}

/// The next frame within the deadline; `meanwhile` is called while none comes.
std::optional<frame> next(actor::link& l, const std::function<void()>& meanwhile = {},
                          std::chrono::milliseconds at_most = patience) {
  const auto end = std::chrono::steady_clock::now() + at_most;
  while (std::chrono::steady_clock::now() < end) {
    if (auto f = l.receive()) return f;
    if (meanwhile) meanwhile();
    l.wait(microseconds{10'000});
  }
  return std::nullopt;
}

bridge_options quick() {
  bridge_options o;
  o.heartbeat = microseconds{50'000};
  o.silence_max = microseconds{1'000'000};
  return o;
}

/// Two processes in one: each with its own ZeroMQ context, and a watcher of peers.
struct pair_of_fabrics {
  zmq_fabric front{1};
  zmq_fabric back{2};
  std::unique_ptr<actor::link> front_link = front.make_link(1);
  std::unique_ptr<actor::link> back_link = back.make_link(1);
  actor::address front_actor = make_address(1, 1, 5);
  actor::address back_actor = make_address(2, 1, 6);

  void expect_peer(actor::link& l, std::uint16_t process, bool reachable) {
    const auto news = next(l);
    ASSERT_TRUE(news) << "no word of process " << process;
    ASSERT_EQ(news->head.id, actor::peer_state::id);
    const auto state = actor::decode<actor::peer_state>(news->body);
    ASSERT_TRUE(state);
    EXPECT_EQ(state->process, process);
    EXPECT_EQ(state->reachable, reachable);
  }
  void expect_talk() {
    expect_peer(*front_link, 2, true);
    expect_peer(*back_link, 1, true);
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(front_link->send(note(back_actor, front_actor, std::to_string(i))));
    for (int i = 0; i < 100; ++i) {
      const auto f = next(*back_link);
      ASSERT_TRUE(f) << "frame " << i;
      EXPECT_EQ(f->body, std::to_string(i));
      EXPECT_EQ(f->head, (envelope{.to = back_actor, .from = front_actor, .id = {0x0f01}}));
    }
    ASSERT_TRUE(back_link->send(note(front_actor, back_actor, std::string(1 << 20, 'x'))));
    const auto large = next(*front_link);
    ASSERT_TRUE(large);
    EXPECT_EQ(large->body.size(), 1u << 20);
  }
};

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
  // To itself, too.
  ASSERT_TRUE(a->send(note(make_address(1, 1, 7), make_address(1, 1, 3), "self")));
  ASSERT_TRUE(next(*a));
}

TEST(zmq_fabric, refuses_frames_to_workers_and_processes_it_does_not_know) {
  zmq_fabric fabric(1);
  const auto a = fabric.make_link(1);
  const auto no_worker = a->send(note(make_address(1, 9, 1), {}, ""));
  ASSERT_FALSE(no_worker);
  EXPECT_EQ(no_worker.error().code, errc::unreachable);
  EXPECT_EQ(a->send(note(make_address(1, 999, 1), {}, "")).error().code, errc::unreachable);
  const auto no_bridge = a->send(note(make_address(2, 1, 1), {}, ""));
  ASSERT_FALSE(no_bridge);
  EXPECT_EQ(no_bridge.error().code, errc::unreachable);
}

TEST(zmq_fabric, bridges_processes_over_ipc_and_tells_who_came_and_went) {
  const scratch directory(0700);
  pair_of_fabrics p;
  auto options = quick();
  options.listen = directory.endpoint();
  const auto listening = p.front.start_bridge(options, {p.front_actor});
  ASSERT_TRUE(listening) << listening.error().describe();
  options = quick();
  options.join = directory.endpoint();
  ASSERT_TRUE(p.back.start_bridge(options, {p.back_actor}));
  p.expect_talk();
  p.back.stop_bridge();
  p.expect_peer(*p.front_link, 2, false);
}

TEST(zmq_fabric, bridges_processes_over_tcp_with_curve) {
  const auto front_keys = make_curve_keys();
  const auto back_keys = make_curve_keys();
  pair_of_fabrics p;
  auto options = quick();
  options.silence_max = microseconds{20'000'000};  // a megabyte takes seconds to encrypt under a sanitizer
  options.listen = "tcp://127.0.0.1:*";
  options.own_keys = front_keys;
  options.allowed_public_keys = {back_keys.public_key};
  ASSERT_TRUE(p.front.start_bridge(options, {p.front_actor}));
  options = quick();
  options.silence_max = microseconds{20'000'000};
  options.join = p.front.bound_endpoint();
  EXPECT_TRUE(options.join.starts_with("tcp://127.0.0.1:"));
  options.own_keys = back_keys;
  options.server_public_key = front_keys.public_key;
  ASSERT_TRUE(p.back.start_bridge(options, {p.back_actor}));
  p.expect_talk();
}

TEST(zmq_fabric, lets_no_unknown_key_in) {
  const auto front_keys = make_curve_keys();
  pair_of_fabrics p;
  auto options = quick();
  options.listen = "tcp://127.0.0.1:*";
  options.own_keys = front_keys;
  options.allowed_public_keys = {make_curve_keys().public_key};
  ASSERT_TRUE(p.front.start_bridge(options, {p.front_actor}));
  options = quick();
  options.join = p.front.bound_endpoint();
  options.own_keys = make_curve_keys();
  options.server_public_key = front_keys.public_key;
  ASSERT_TRUE(p.back.start_bridge(options, {p.back_actor}));
  (void)p.back_link->send(note(p.front_actor, p.back_actor, "let me in"));
  EXPECT_FALSE(next(*p.front_link, {}, std::chrono::milliseconds(700)));
}

TEST(zmq_fabric, lets_nobody_in_without_a_key_where_keys_are_wanted) {
  pair_of_fabrics p;
  auto options = quick();
  options.listen = "tcp://127.0.0.1:*";
  options.own_keys = make_curve_keys();
  ASSERT_TRUE(p.front.start_bridge(options, {p.front_actor}));
  options = quick();
  options.join = p.front.bound_endpoint();
  options.insecure_plaintext = true;
  ASSERT_TRUE(p.back.start_bridge(options, {p.back_actor}));
  (void)p.back_link->send(note(p.front_actor, p.back_actor, "let me in"));
  EXPECT_FALSE(next(*p.front_link, {}, std::chrono::milliseconds(500)));
}

TEST(zmq_fabric, wants_keys_for_tcp_unless_plaintext_is_asked_for) {
  zmq_fabric fabric(1);
  auto options = quick();
  options.listen = "tcp://127.0.0.1:*";
  const auto refused = fabric.start_bridge(options, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::invalid_argument);
  EXPECT_NE(refused.error().context.find("CURVE"), std::string::npos);
  options.insecure_plaintext = true;
  EXPECT_TRUE(fabric.start_bridge(options, {}));
}

TEST(zmq_fabric, refuses_endpoints_that_are_unsafe_or_unusable) {
  const scratch open_to_others(0755);
  zmq_fabric fabric(1);
  auto options = quick();
  options.listen = open_to_others.endpoint();
  const auto unsafe = fabric.start_bridge(options, {});
  ASSERT_FALSE(unsafe);
  EXPECT_EQ(unsafe.error().code, errc::invalid_argument);
  EXPECT_NE(unsafe.error().context.find("0700"), std::string::npos);
  options.listen = "ipc:///nonexistent-redline/bus";
  EXPECT_EQ(fabric.start_bridge(options, {}).error().code, errc::io_error);
  options.listen = "udp://127.0.0.1:1";
  EXPECT_EQ(fabric.start_bridge(options, {}).error().code, errc::invalid_argument);
}

TEST(zmq_fabric, returns_frames_for_a_process_that_is_not_connected) {
  const scratch directory(0700);
  zmq_fabric fabric(1);
  const auto l = fabric.make_link(1);
  auto options = quick();
  options.listen = directory.endpoint();
  ASSERT_TRUE(fabric.start_bridge(options, {}));
  const auto sender = make_address(1, 1, 5);
  ASSERT_TRUE(l->send(note(make_address(3, 1, 1), sender, "hello?")));
  const auto back = next(*l);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->head.to, sender);
  ASSERT_EQ(back->head.id, actor::undeliverable::id);
  const auto m = actor::decode<actor::undeliverable>(back->body);
  ASSERT_TRUE(m);
  EXPECT_EQ(m->to, make_address(3, 1, 1));
  EXPECT_EQ(m->what.value, 0x0f01);
  EXPECT_EQ(m->why.code, errc::unreachable);
}

TEST(zmq_fabric, needs_no_descriptors_after_its_links_are_made) {
  zmq_fabric fabric(1, {.workers = {1, 2}});
  const auto first = fabric.make_link(1), second = fabric.make_link(2);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 3;  // standard input and output have them
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
