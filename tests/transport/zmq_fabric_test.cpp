#include "transport/zmq_fabric.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <thread>

#include "runtime/actor/system_messages.hpp"
#include "transport/bridge_counts.hpp"

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
  [[nodiscard]] const std::string& path() const { return path_; }
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

/// The next news of a peer within the deadline.
actor::peer_state next_news(actor::link& l) {
  const auto f = next(l);
  EXPECT_TRUE(f);
  if (!f || f->head.id != actor::peer_state::id) return {};
  const auto news = actor::decode<actor::peer_state>(f->body);
  return news ? *news : actor::peer_state{};
}

std::uint64_t count_of(bridge_refusal why) { return read_bridge_counts()[static_cast<std::size_t>(why)]; }

/// Waits until the bridge has refused something once more for that reason.
bool is_refused_again(bridge_refusal why, std::uint64_t before) {
  for (int i = 0; i < 500 && count_of(why) == before; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return count_of(why) > before;
}

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
  const auto before = count_of(bridge_refusal::key);
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
  EXPECT_TRUE(is_refused_again(bridge_refusal::key, before));
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

/// Two processes that have met, over ipc.
struct met_fabrics : pair_of_fabrics {
  explicit met_fabrics(const peer_rules& rules = {}) {
    auto options = quick();
    options.listen = directory.endpoint();
    options.rules = rules;
    EXPECT_TRUE(front.start_bridge(options, {front_actor}));
    options = quick();
    options.join = directory.endpoint();
    EXPECT_TRUE(back.start_bridge(options, {back_actor}));
    expect_peer(*front_link, 2, true);
    expect_peer(*back_link, 1, true);
  }
  scratch directory{0700};
};

TEST(zmq_fabric, takes_from_a_process_only_what_its_role_sends) {
  met_fabrics p(
      {.may_send = [](std::uint16_t process, actor::message_id what) { return process == 2 && what.value == 0x0f01; }});
  const auto before = count_of(bridge_refusal::message);
  auto foreign = note(p.front_actor, p.back_actor, "drain");
  foreign.head.id = {0x0801};
  ASSERT_TRUE(p.back_link->send(foreign));
  ASSERT_TRUE(p.back_link->send(note(p.front_actor, p.back_actor, "mine")));
  EXPECT_EQ(next(*p.front_link)->body, "mine");
  EXPECT_EQ(count_of(bridge_refusal::message), before + 1);
  // Nor may it say of others that they cannot be reached.
  auto news = note(p.front_actor, p.back_actor,
                   actor::encode(actor::undeliverable{make_address(3, 1, 1), {0x0f01}, {errc::unreachable, "gone"}}));
  news.head.id = actor::undeliverable::id;
  ASSERT_TRUE(p.back_link->send(news));
  EXPECT_TRUE(is_refused_again(bridge_refusal::message, before + 1));
}

TEST(zmq_fabric, gives_other_processes_no_sockets_to_workers_that_do_not_exist) {
  met_fabrics p;
  const auto before = count_of(bridge_refusal::receiver);
  ASSERT_TRUE(p.back_link->send(note(make_address(1, 77, 5), p.back_actor, "anybody?")));
  EXPECT_TRUE(is_refused_again(bridge_refusal::receiver, before));
}

TEST(zmq_fabric, refuses_a_process_whose_hello_does_not_fit_and_says_so_on_both_sides) {
  const scratch directory(0700);
  pair_of_fabrics p;
  auto options = quick();
  options.listen = directory.endpoint();
  options.rules.check = [](std::uint16_t, std::string_view hello) -> result<void> {
    if (hello == "small model") return {};
    return failure{errc::invalid_argument, "it has another model file"};
  };
  ASSERT_TRUE(p.front.start_bridge(options, {p.front_actor}));
  options = quick();
  options.join = directory.endpoint();
  options.rules.hello = "large model";
  ASSERT_TRUE(p.back.start_bridge(options, {p.back_actor}));
  const auto at_front = next_news(*p.front_link), at_back = next_news(*p.back_link);
  EXPECT_FALSE(at_front.reachable);
  EXPECT_EQ(at_front.process, 2);
  EXPECT_EQ(at_front.why_not, "it has another model file");
  EXPECT_FALSE(at_back.reachable);
  EXPECT_NE(at_back.why_not.find("it has another model file"), std::string::npos);
  ASSERT_TRUE(p.back_link->send(note(p.front_actor, p.back_actor, "an answer")));
  EXPECT_EQ(next(*p.back_link)->head.id, actor::undeliverable::id);
  EXPECT_FALSE(next(*p.front_link, {}, std::chrono::milliseconds(200)));
  // Its successor fits.
  p.back.stop_bridge();
  zmq_fabric again(2);
  const auto link = again.make_link(1);
  options.rules.hello = "small model";
  ASSERT_TRUE(again.start_bridge(options, {}));
  EXPECT_TRUE(next_news(*p.front_link).reachable);
}

TEST(zmq_fabric, refuses_a_second_process_of_a_number_until_the_first_is_gone) {
  met_fabrics p;
  zmq_fabric second(2);
  const auto link = second.make_link(1);
  auto options = quick();
  options.join = p.directory.endpoint();
  ASSERT_TRUE(second.start_bridge(options, {p.back_actor}));
  const auto refused = next_news(*link);
  EXPECT_FALSE(refused.reachable);
  EXPECT_NE(refused.why_not.find("another process 2 is connected"), std::string::npos) << refused.why_not;
  ASSERT_TRUE(p.front_link->send(note(p.back_actor, p.front_actor, "to the first")));
  EXPECT_EQ(next(*p.back_link)->body, "to the first");
  p.back.stop_bridge();
  p.expect_peer(*p.front_link, 2, false);
  p.expect_peer(*p.front_link, 2, true);
  EXPECT_TRUE(next_news(*link).reachable);
}

TEST(zmq_fabric, tells_the_loss_of_a_process_before_its_successor) {
  const scratch directory(0700);
  zmq_fabric back(2);
  const auto back_link = back.make_link(1);
  auto options = quick();
  options.silence_max = microseconds{60'000'000};
  options.join = directory.endpoint();
  ASSERT_TRUE(back.start_bridge(options, {make_address(2, 1, 6)}));
  for (int i = 0; i < 2; ++i) {
    zmq_fabric front(1);
    const auto front_link = front.make_link(1);
    options = quick();
    options.listen = directory.endpoint();
    ASSERT_TRUE(front.start_bridge(options, {}));
    if (i > 0) {
      EXPECT_FALSE(next_news(*back_link).reachable);
    }
    EXPECT_TRUE(next_news(*back_link).reachable);
  }
}

TEST(zmq_fabric, lets_a_key_be_no_other_process_than_its_own) {
  const auto front_keys = make_curve_keys();
  const auto back_keys = make_curve_keys();
  pair_of_fabrics p;
  auto options = quick();
  options.listen = "tcp://127.0.0.1:*";
  options.own_keys = front_keys;
  options.allowed_public_keys = {back_keys.public_key};
  options.key_processes = {{back_keys.public_key, 3}};
  const auto before = count_of(bridge_refusal::sender);
  ASSERT_TRUE(p.front.start_bridge(options, {p.front_actor}));
  options = quick();
  options.join = p.front.bound_endpoint();
  options.own_keys = back_keys;
  options.server_public_key = front_keys.public_key;
  ASSERT_TRUE(p.back.start_bridge(options, {}));
  EXPECT_TRUE(is_refused_again(bridge_refusal::sender, before));
  EXPECT_FALSE(next(*p.front_link, {}, std::chrono::milliseconds(100)));
}

TEST(zmq_fabric, a_directory_of_others_is_refused_by_those_who_join_too) {
  const scratch open_to_others(0755);
  zmq_fabric fabric(2);
  auto options = quick();
  options.join = open_to_others.endpoint();
  EXPECT_NE(fabric.start_bridge(options, {}).error().context.find("0700"), std::string::npos);
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a directory away";
  const scratch given_away(0700);
  options.join = given_away.endpoint();
  ASSERT_EQ(::chown(given_away.path().c_str(), 12345, 12345), 0);
  EXPECT_NE(fabric.start_bridge(options, {}).error().context.find("owned by user 12345"), std::string::npos);
}

TEST(zmq_fabric, a_second_server_at_an_ipc_path_is_refused) {
  const scratch directory(0700);
  auto options = quick();
  options.listen = directory.endpoint();
  zmq_fabric first(1), second(1);
  ASSERT_TRUE(first.start_bridge(options, {}));
  const auto refused = second.start_bridge(options, {});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().context.find("another process listens at ipc://"), std::string::npos);
  first.stop_bridge();
  EXPECT_TRUE(second.start_bridge(options, {})) << "the path is free again";
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
