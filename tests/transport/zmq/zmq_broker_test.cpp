#include "transport/zmq/zmq_broker.hpp"

#include <algorithm>
#include <atomic>
#include <optional>
#include <zmq.hpp>

#include "runtime/actor/codec.hpp"
#include "runtime/base/log.hpp"
#include "tests/transport/zmq/pool_fixture.hpp"
#include "transport/zmq/zmq_bridge.hpp"
#include "transport/zmq/zmq_fabric.hpp"
#include "transport/zmq/zmq_parts.hpp"

namespace redline::transport {
namespace {

constexpr std::uint8_t gateway = 1, worker = 2;

/// Cards are "gateway ..." and "worker ..."; only a worker sends message 0x0f02.
pool_rules roles() {
  return {.read_role = [](std::string_view card) -> result<std::uint8_t> {
            if (card.starts_with("gateway")) return gateway;
            if (card.starts_with("worker")) return worker;
            return failure{errc::invalid_argument, "it is neither a gateway nor a worker"};
          },
          .may_meet = [](std::uint8_t a, std::uint8_t b) { return a != b; },
          .may_send =
              [](std::uint8_t role, actor::message_id what) {
                return what.value == 0x0f01 || (role == worker && what.value == 0x0f02);
              }};
}

link_limits quick() { return {.heartbeat = microseconds{50'000}, .silence_max = microseconds{1'000'000}}; }

broker_options at(const std::string& endpoint) { return {.listens = {endpoint}, .rules = roles(), .limits = quick()}; }

/// A process: a fabric with one worker, on which one actor watches for other processes.
struct process {
  process(actor::process_number number, const std::string& card, std::vector<std::string> brokers)
      : fabric(number), link(fabric.make_link(1)), at(make_address(number, 1, 5)) {
    options.joins = std::move(brokers);
    options.card = card;
    options.rules = roles();
    options.limits = quick();
  }
  void join() {
    const auto joined = fabric.start_bridge(options, {at});
    ASSERT_TRUE(joined) << joined.error().describe();
  }
  /// Expects that the next news is about this process.
  actor::peer_state expect_news(actor::process_number of, bool reachable) {
    const auto news = next_news(*link);
    EXPECT_EQ(news.process, of);
    EXPECT_EQ(news.reachable, reachable) << news.why_not;
    return news;
  }
  bridge_options options;
  zmq_fabric fabric;
  std::unique_ptr<actor::link> link;
  actor::address at;
};

/// A broker, a gateway and a worker that have met.
struct small_pool {
  small_pool() {
    EXPECT_TRUE(broker.start(transport::at(directory.endpoint())));
    front.join();
    back.join();
    EXPECT_EQ(front.expect_news(2, true).card, "worker of a model");
    EXPECT_EQ(back.expect_news(1, true).card, "gateway");
  }
  scratch directory{0700};
  zmq_broker broker;
  process front{1, "gateway", {directory.endpoint()}};
  process back{2, "worker of a model", {directory.endpoint()}};
};

void expect_talk(process& a, process& b) {
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(a.link->send(note(b.at, a.at, std::to_string(i))));
  for (int i = 0; i < 100; ++i) {
    const auto f = next(*b.link);
    ASSERT_TRUE(f) << "frame " << i;
    EXPECT_EQ(f->body, std::to_string(i));
    EXPECT_EQ(f->head, (envelope{.to = b.at, .from = a.at, .id = {0x0f01}}));
  }
  ASSERT_TRUE(b.link->send(note(a.at, b.at, std::string(1 << 20, 'x'))));
  const auto large = next(*a.link);
  ASSERT_TRUE(large);
  EXPECT_EQ(large->body.size(), 1u << 20);
}

/// A broker counts a frame after sending it on, so the receiver may have the last one before it is counted.
void expect_frames(const std::vector<const zmq_broker*>& brokers, std::uint64_t count) {
  const auto counted = [&] {
    std::uint64_t frames = 0;
    for (const zmq_broker* one : brokers) frames += one->counts().frames;
    return frames;
  };
  for (int i = 0; i < 2000 && counted() < count; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(counted(), count);
}

/// No process counts as gone within a test, however busy the machine is.
broker_options patient(const std::string& endpoint) {
  auto options = at(endpoint);
  options.limits.silence_max = microseconds{20'000'000};
  return options;
}

/// What an unknown client's socket can do at a broker without keys.
struct raw_socket {
  raw_socket(const std::string& endpoint, const std::string& identity) {
    socket.set(zmq::sockopt::routing_id, identity);
    socket.set(zmq::sockopt::linger, 0);
    socket.connect(endpoint);
  }
  void send(const envelope& head, std::string_view body) {
    socket.send(zmq::buffer(actor::encode(head)), zmq::send_flags::sndmore);
    socket.send(zmq::buffer(body), zmq::send_flags::none);
  }
  zmq::context_t context{1};
  zmq::socket_t socket{context, ZMQ_DEALER};
};

TEST(zmq_broker, carries_frames_in_order_over_ipc_and_tells_who_came_and_went) {
  small_pool p;
  expect_talk(p.front, p.back);
  EXPECT_EQ(p.broker.counts().processes, 2U);
  expect_frames({&p.broker}, 101);
  p.back.fabric.stop_bridge();
  EXPECT_EQ(p.front.expect_news(2, false).why_not, "it has stopped");
}

TEST(zmq_broker, carries_frames_over_tcp_with_curve) {
  const auto server = make_curve_keys(), gateway_keys = make_curve_keys(), worker_keys = make_curve_keys();
  zmq_broker broker;
  auto options = at("tcp://127.0.0.1:*");
  options.limits.silence_max = microseconds{20'000'000};  // with a sanitizer, encrypting a megabyte takes seconds
  options.own_keys = server;
  options.allowed_public_keys = {gateway_keys.public_key, worker_keys.public_key};
  options.key_roles = {{gateway_keys.public_key, gateway}, {worker_keys.public_key, worker}};
  ASSERT_TRUE(broker.start(options));
  process front(1, "gateway", broker.bound_endpoints()), back(2, "worker", broker.bound_endpoints());
  for (auto* one : {&front, &back}) {
    one->options.own_keys = one == &front ? gateway_keys : worker_keys;
    one->options.server_public_key = server.public_key;
    one->options.limits = options.limits;
    one->join();
  }
  front.expect_news(2, true);
  back.expect_news(1, true);
  expect_talk(front, back);

  // A worker's key is not valid for a gateway.
  process liar(3, "gateway", broker.bound_endpoints());
  liar.options.own_keys = worker_keys;
  liar.options.server_public_key = server.public_key;
  liar.join();
  EXPECT_EQ(liar.expect_news(0, false).why_not, "its key is not for this role");
}

/// The keys of a process that dials: its own, if it has any, and the broker's as it knows it.
struct dialer {
  std::optional<curve_keys> own;
  std::string server_key;
};

/// Waits until a broker's log contains each of these words, while processes with these keys dial repeatedly. Either
/// side may close a connection first, and the broker only notices if it is not the first.
void expect_log_of_refusing(const broker_options& options, const std::vector<dialer>& dialers,
                            const std::vector<std::string>& words) {
  configure_log(log_level::warning, log_format::text);
  testing::internal::CaptureStderr();
  std::string out;
  zmq_broker broker;
  EXPECT_TRUE(broker.start(options));
  const auto is_said = [&](const std::string& word) { return out.find(word) != std::string::npos; };
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!std::ranges::all_of(words, is_said) && std::chrono::steady_clock::now() < end) {
    zmq::context_t context{1};
    std::vector<zmq::socket_t> sockets;
    for (const auto& one : dialers) {
      auto& socket = sockets.emplace_back(context, ZMQ_DEALER);
      socket.set(zmq::sockopt::linger, 0);
      if (one.own) {
        socket.set(zmq::sockopt::curve_serverkey, one.server_key);
        socket.set(zmq::sockopt::curve_publickey, one.own->public_key);
        socket.set(zmq::sockopt::curve_secretkey, one.own->secret_key);
      }
      socket.connect(broker.bound_endpoints().front());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    out += testing::internal::GetCapturedStderr();
    testing::internal::CaptureStderr();
  }
  for (const auto& word : words) EXPECT_TRUE(is_said(word)) << word << "\n" << out;
  EXPECT_EQ(broker.counts().processes, 0U);
  broker.stop();
  (void)testing::internal::GetCapturedStderr();
}

TEST(zmq_broker, lets_no_unknown_key_in_and_nobody_without_one_and_says_what_to_do) {
  const auto before = count_of(bridge_refusal::key);
  const auto server = make_curve_keys(), known = make_curve_keys(), unknown = make_curve_keys();
  auto options = at("tcp://127.0.0.1:*");
  options.own_keys = server;
  options.allowed_public_keys = {known.public_key};
  expect_log_of_refusing(
      options, {{unknown, server.public_key}, {known, make_curve_keys().public_key}, {std::nullopt, {}}},
      {"refused the key " + unknown.public_key + " of 127.0.0.1, which is not among the allowed ones: put its .public",
       "expects another key of this broker: copy this broker's server.public into the --keys folder of that process",
       "refused a peer without keys: start its process with --keys"});
  EXPECT_GE(count_of(bridge_refusal::key), before + 3);
}

TEST(zmq_broker, says_that_it_lacks_keys_to_a_process_that_has_some) {
  auto options = at("tcp://127.0.0.1:*");
  options.insecure_plaintext = true;
  expect_log_of_refusing(options, {{make_curve_keys(), make_curve_keys().public_key}},
                         {"refused a peer with keys, while this broker has none: start the broker with --keys"});
}

TEST(zmq_broker, wants_safe_endpoints) {
  zmq_broker broker;
  EXPECT_NE(broker.start(at("tcp://127.0.0.1:*")).error().context.find("CURVE"), std::string::npos);
  const scratch open_to_others(0755);
  EXPECT_NE(broker.start(at(open_to_others.endpoint())).error().context.find("0700"), std::string::npos);
  EXPECT_EQ(broker.start(at("ipc:///nonexistent-redline/bus")).error().code, errc::io_error);
  EXPECT_EQ(broker.start(at("udp://127.0.0.1:1")).error().code, errc::invalid_argument);
  // Processes that dial check too, because the owner of a directory can put another socket there.
  process dialling(2, "worker", {open_to_others.endpoint()});
  EXPECT_NE(dialling.fabric.start_bridge(dialling.options, {}).error().context.find("0700"), std::string::npos);
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a directory away";
  const scratch given_away(0700);
  ASSERT_EQ(::chown(given_away.path().c_str(), 12345, 12345), 0);
  dialling.options.joins = {given_away.endpoint()};
  EXPECT_NE(dialling.fabric.start_bridge(dialling.options, {}).error().context.find("owned by user 12345"),
            std::string::npos);
}

TEST(zmq_broker, refuses_a_second_broker_at_an_ipc_path) {
  const scratch directory(0700);
  zmq_broker first, second;
  ASSERT_TRUE(first.start(at(directory.endpoint())));
  const auto refused = second.start(at(directory.endpoint()));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().context.find("another process listening at ipc://"), std::string::npos);
  first.stop();
  EXPECT_TRUE(second.start(at(directory.endpoint()))) << "the path is free again";
}

TEST(zmq_broker, tells_when_a_process_says_something_else_of_itself) {
  small_pool p;
  p.back.fabric.update_card("worker that is draining");
  EXPECT_EQ(p.front.expect_news(2, true).card, "worker that is draining");
}

TEST(zmq_broker, is_told_of_again_to_a_watcher_that_has_forgotten) {
  small_pool p;
  p.front.fabric.tell_peers_again();
  EXPECT_EQ(p.front.expect_news(2, true).card, "worker of a model");
}

TEST(zmq_broker, keeps_those_apart_that_do_not_work_together) {
  small_pool p;
  process other(3, "worker of another model", {p.directory.endpoint()});
  other.join();
  EXPECT_EQ(other.expect_news(1, true).card, "gateway");
  p.front.expect_news(3, true);
  ASSERT_TRUE(other.link->send(note(p.back.at, other.at, "among workers")));
  EXPECT_EQ(next(*other.link)->head.id, actor::undeliverable::id);
  EXPECT_FALSE(next(*p.back.link, {}, std::chrono::milliseconds(200)));
}

TEST(zmq_broker, refuses_a_process_that_is_none_of_its_pool) {
  small_pool p;
  process foreign(3, "a mail server", {p.directory.endpoint()});
  foreign.join();
  EXPECT_EQ(foreign.expect_news(0, false).why_not, "it is neither a gateway nor a worker");
  ASSERT_TRUE(foreign.link->send(note(p.front.at, foreign.at, "hello")));
  EXPECT_EQ(next(*foreign.link)->head.id, actor::undeliverable::id);
}

TEST(zmq_broker, of_another_protocol_is_refused_by_those_who_dial_it) {
  for (const std::uint32_t protocol : {0U, 6U, 8U}) {
    const scratch directory(0700);
    zmq_broker broker;
    auto options = at(directory.endpoint());
    options.rules.protocol = protocol;
    ASSERT_TRUE(broker.start(options));
    process front(1, "gateway", {directory.endpoint()}), back(2, "worker", {directory.endpoint()});
    for (auto* one : {&front, &back}) {
      one->options.rules.protocol = 7;
      one->join();
      EXPECT_EQ(one->expect_news(0, false).why_not, "expected a broker of protocol 7, found " +
                                                        std::to_string(protocol) +
                                                        "; run the same version of redline in all processes of a pool");
    }
    while (broker.counts().processes > 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ASSERT_TRUE(back.link->send(note(front.at, back.at, "hello")));
    EXPECT_EQ(next(*back.link)->head.id, actor::undeliverable::id);
  }
}

/// A broker by hand, of a version without a protocol or one that refuses: counts its hellos and reads their cards.
struct broker_by_hand {
  explicit broker_by_hand(const std::string& endpoint) { socket.bind(endpoint); }
  std::string next_hello() {
    zmq::pollitem_t item{socket.handle(), 0, ZMQ_POLLIN, 0};
    for (;;) {
      if (zmq::poll(&item, 1, std::chrono::milliseconds(patience)) == 0) return "none";
      std::vector<zmq::message_t> parts;
      if (!receive_parts(socket, parts) || parts.size() != 3) continue;
      const auto head = read_envelope(view(parts[1]));
      identity = view(parts[0]);
      if (head && head->id == wire::hello) return std::string(view(parts[2]));
    }
  }
  void answer(actor::message_id what, std::string_view body) {
    socket.send(zmq::buffer(identity), zmq::send_flags::sndmore);
    socket.send(zmq::buffer(actor::encode(envelope{.id = what, .from_start_id = 5})), zmq::send_flags::sndmore);
    socket.send(zmq::buffer(body), zmq::send_flags::none);
  }
  zmq::context_t context{1};
  zmq::socket_t socket{context, ZMQ_ROUTER};
  std::string identity;
};

TEST(zmq_broker, that_refuses_or_is_refused_is_not_asked_with_every_beat) {
  for (const bool is_old : {false, true}) {
    const scratch directory(0700);
    broker_by_hand broker(directory.endpoint());
    process back(2, "worker", {directory.endpoint()});
    back.options.rules.protocol = 7;
    back.options.limits.refused_pause = std::chrono::hours(1);
    back.options.limits.heartbeat = std::chrono::milliseconds(5);
    back.join();
    EXPECT_EQ(broker.next_hello(), "worker");
    broker.answer(is_old ? wire::hello : wire::refusal, is_old ? "" : "it is not liked");
    EXPECT_NE(back.expect_news(0, false).why_not, "");
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // ten heartbeats
    back.fabric.update_card("worker that has changed");
    int asked = 0;
    for (std::string card; card != "worker that has changed"; ++asked) {
      card = broker.next_hello();
      ASSERT_NE(card, "none");
    }
    EXPECT_LE(asked, 2) << "one may have been in flight";
  }
}

TEST(zmq_broker, may_know_processes_that_others_refuse) {
  small_pool p;
  process strict(3, "gateway", {p.directory.endpoint()});
  strict.options.rules.read_role = [](std::string_view card) -> result<std::uint8_t> {
    if (card.starts_with("gateway")) return gateway;
    return failure{errc::invalid_argument, "it speaks another protocol"};
  };
  strict.join();
  EXPECT_EQ(strict.expect_news(2, false).why_not, "it speaks another protocol");
  p.back.expect_news(3, true);
  ASSERT_TRUE(p.back.link->send(note(strict.at, p.back.at, "hello")));
  EXPECT_FALSE(next(*strict.link, {}, std::chrono::milliseconds(200)));
}

TEST(zmq_broker, carries_only_what_a_role_sends) {
  small_pool p;
  const auto before = count_of(bridge_refusal::message);
  auto foreign = note(p.back.at, p.front.at, "a worker's word");
  foreign.head.id = {0x0f02};
  ASSERT_TRUE(p.front.link->send(foreign));
  EXPECT_TRUE(is_refused_again(bridge_refusal::message, before));
  foreign.head.to = p.front.at;
  foreign.head.from = p.back.at;
  ASSERT_TRUE(p.back.link->send(foreign));
  EXPECT_EQ(next(*p.front.link)->body, "a worker's word");
  // A process also may not report others as unreachable.
  auto news = note(p.front.at, p.back.at,
                   actor::encode(actor::undeliverable{make_address(9, 1, 1), {0x0f01}, {errc::unreachable, "gone"}}));
  news.head.id = actor::undeliverable::id;
  ASSERT_TRUE(p.back.link->send(news));
  EXPECT_TRUE(is_refused_again(bridge_refusal::message, before + 1));
}

TEST(zmq_broker, gives_other_processes_no_sockets_to_workers_that_do_not_exist) {
  small_pool p;
  const auto before = count_of(bridge_refusal::receiver);
  ASSERT_TRUE(p.back.link->send(note(make_address(1, 77, 5), p.back.at, "anybody?")));
  EXPECT_TRUE(is_refused_again(bridge_refusal::receiver, before));
}

TEST(zmq_broker, believes_no_frame_that_names_another_sender) {
  small_pool p;
  const process_start self{7, 77};
  raw_socket liar(p.directory.endpoint(), to_identity(self));
  liar.send({.from = make_address(7, 0, 0), .id = wire::hello, .from_start_id = 77}, "gateway 2");
  p.back.expect_news(7, true);
  const auto before = count_of(bridge_refusal::sender);
  liar.send({.to = p.back.at, .from = p.front.at, .id = {0x0f01}, .from_start_id = 77}, "as process 1");
  EXPECT_TRUE(is_refused_again(bridge_refusal::sender, before));
  // This identity has not sent a hello.
  const auto stale = count_of(bridge_refusal::stale);
  raw_socket silent(p.directory.endpoint(), to_identity({8, 88}));
  silent.send({.to = p.back.at, .from = make_address(8, 1, 1), .id = {0x0f01}, .from_start_id = 88}, "no hello");
  EXPECT_TRUE(is_refused_again(bridge_refusal::stale, stale));
  // A known number with another process start, while the process lives.
  const auto process_refusals = count_of(bridge_refusal::process);
  raw_socket twin(p.directory.endpoint(), to_identity({1, 1234}));
  twin.send({.from = make_address(1, 0, 0), .id = wire::hello, .from_start_id = 1234}, "gateway");
  EXPECT_TRUE(is_refused_again(bridge_refusal::process, process_refusals));
  EXPECT_FALSE(next(*p.back.link, {}, std::chrono::milliseconds(200)));
}

TEST(zmq_broker, survives_garbage) {
  small_pool p;
  const auto before = count_of(bridge_refusal::malformed);
  raw_socket noise(p.directory.endpoint(), "anything");
  raw_socket framed(p.directory.endpoint(), to_identity({9, 99}));
  for (const std::string& bytes :
       {std::string(), std::string("x"), std::string(5000, '\xc1'), std::string(1 << 20, '\x93')}) {
    noise.socket.send(zmq::buffer(bytes), zmq::send_flags::none);
    framed.socket.send(zmq::buffer(bytes), zmq::send_flags::sndmore);
    framed.socket.send(zmq::buffer(bytes), zmq::send_flags::none);
    for (int i = 0; i < 5; ++i)
      framed.socket.send(zmq::buffer(bytes), i < 4 ? zmq::send_flags::sndmore : zmq::send_flags::none);
  }
  EXPECT_TRUE(is_refused_again(bridge_refusal::malformed, before));
  framed.send({.from = make_address(9, 0, 0), .id = wire::hello, .from_start_id = 99},
              std::string(card_bytes_max + 1, 'g'));
  // Control messages of every number, with invalid bodies.
  framed.send({.from = make_address(9, 0, 0), .id = wire::hello, .from_start_id = 99}, "gateway of noise");
  p.back.expect_news(9, true);
  for (std::uint16_t id = 1; id < 9; ++id) {
    framed.send({.from = make_address(9, 0, 0), .id = {id}, .from_start_id = 99}, "\xff\xff");
  }
  p.back.expect_news(9, false);  // one of them was a goodbye
  expect_talk(p.front, p.back);
}

TEST(zmq_broker, gives_frames_for_a_process_that_is_gone_back_to_their_sender) {
  small_pool p;
  auto question = note(make_address(3, 1, 1), p.front.at, "hello?");
  question.head.subject = 42;
  ASSERT_TRUE(p.front.link->send(question));
  const auto back = next(*p.front.link);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->head.to, p.front.at);
  ASSERT_EQ(back->head.id, actor::undeliverable::id);
  const auto m = actor::decode<actor::undeliverable>(back->body);
  ASSERT_TRUE(m);
  EXPECT_EQ(m->to, make_address(3, 1, 1));
  EXPECT_EQ(m->what.value, 0x0f01);
  EXPECT_EQ(m->about, 42U);
  EXPECT_EQ(m->why.code, errc::unreachable);
}

TEST(zmq_broker, notices_within_beats_that_a_process_was_killed) {
  small_pool p;
  {
    raw_socket dying(p.directory.endpoint(), to_identity({7, 77}));
    dying.send({.from = make_address(7, 0, 0), .id = wire::hello, .from_start_id = 77}, "worker");
    p.front.expect_news(7, true);
  }
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(p.front.expect_news(7, false).why_not, "its connection is gone");
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(900)) << "less than silence_max";
}

TEST(zmq_broker, counts_a_silent_process_as_lost_and_takes_it_again_when_it_speaks) {
  small_pool p;
  raw_socket stopped(p.directory.endpoint(), to_identity({7, 77}));
  const envelope hello{.from = make_address(7, 0, 0), .id = wire::hello, .from_start_id = 77};
  stopped.send(hello, "worker");
  p.front.expect_news(7, true);
  EXPECT_EQ(p.front.expect_news(7, false).why_not, "it does not respond");
  stopped.send(hello, "worker");
  EXPECT_EQ(p.front.expect_news(7, true).start_id, 77U);
}

TEST(zmq_broker, lets_a_process_take_the_number_of_one_that_is_gone) {
  small_pool p;
  p.back.fabric.stop_bridge();
  p.front.expect_news(2, false);
  process successor(2, "worker again", {p.directory.endpoint()});
  successor.join();
  EXPECT_EQ(p.front.expect_news(2, true).card, "worker again");
}

TEST(zmq_broker, may_be_killed_and_started_again) {
  small_pool p;
  p.broker.stop();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  // Messages sent meanwhile return.
  ASSERT_TRUE(p.front.link->send(note(p.back.at, p.front.at, "lost")));
  const auto back = next(*p.front.link);
  ASSERT_TRUE(back);
  ASSERT_EQ(back->head.id, actor::undeliverable::id);
  // The process is not gone yet, so no session needs to start again.
  EXPECT_EQ(actor::decode<actor::undeliverable>(back->body)->why.code, errc::not_ready);
  zmq_broker again;
  ASSERT_TRUE(again.start(at(p.directory.endpoint())));
  // The same processes are announced again, because messages were lost.
  p.front.expect_news(2, true);
  p.back.expect_news(1, true);
  expect_talk(p.front, p.back);
}

TEST(zmq_broker, is_missed_after_a_while) {
  small_pool p;
  p.broker.stop();
  EXPECT_EQ(p.front.expect_news(2, false).why_not, "no broker is connected to it");
}

TEST(zmq_broker, may_be_one_of_two) {
  const scratch first_directory(0700), second_directory(0700);
  zmq_broker first, second;
  ASSERT_TRUE(first.start(patient(first_directory.endpoint())));
  ASSERT_TRUE(second.start(patient(second_directory.endpoint())));
  const std::vector<std::string> both{first_directory.endpoint(), second_directory.endpoint()};
  process front(1, "gateway", both), back(2, "worker", both);
  for (auto* one : {&front, &back}) {
    one->options.limits.silence_max = microseconds{20'000'000};
    one->join();
  }
  front.expect_news(2, true);
  back.expect_news(1, true);
  while (first.counts().processes < 2 || second.counts().processes < 2) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  expect_talk(front, back);
  expect_frames({&first, &second}, 101);
  for (zmq_broker* gone : {&first, &second}) {
    zmq_broker* const left = gone == &first ? &second : &first;
    gone->stop();
    const auto before = left->counts().frames;
    // They are announced to each other again, because messages in flight were lost.
    front.expect_news(2, true);
    back.expect_news(1, true);
    expect_talk(front, back);
    expect_frames({left}, before + 101);
    if (gone == &second) break;
    ASSERT_TRUE(gone->start(patient(first_directory.endpoint())));
    while (gone->counts().processes < 2) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

/// Brokers do not know each other, so each may have accepted another process under one number.
TEST(zmq_broker, may_disagree_with_another_one_who_a_process_is) {
  const scratch first_directory(0700), second_directory(0700);
  const std::vector<std::string> both{first_directory.endpoint(), second_directory.endpoint()};
  zmq_broker first, second;
  ASSERT_TRUE(first.start(patient(both[0])));
  std::atomic<bool> has_gone{false};
  process front(1, "gateway", both), back(2, "worker", both);
  for (auto* one : {&front, &back}) {
    one->options.limits.silence_max = microseconds{20'000'000};
    one->options.on_number_taken = [&] { has_gone = true; };
    one->join();
  }
  front.expect_news(2, true);
  back.expect_news(1, true);
  // Another process with the worker's number waits for the second broker, and arrives before or after the worker.
  const auto before = count_of(bridge_refusal::process);
  raw_socket twin(both[1], to_identity({2, 1}));
  twin.send({.from = make_address(2, 0, 0), .id = wire::hello, .from_start_id = 1}, "worker");
  ASSERT_TRUE(second.start(patient(both[1])));
  EXPECT_TRUE(is_refused_again(bridge_refusal::process, before)) << "one of the two";
  while (second.counts().processes < 2) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  // Known processes continue to talk to each other, whatever the second broker says.
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(front.link->send(note(back.at, front.at, std::to_string(i))));
  for (int i = 0; i < 100;) {
    const auto f = next(*back.link);
    ASSERT_TRUE(f) << "frame " << i;
    if (f->head.id == actor::peer_state::id) continue;  // the refusal may be reported
    EXPECT_EQ(f->body, std::to_string(i++));
  }
  EXPECT_FALSE(has_gone) << "the later of the two process starts stays";
  // A process leaves if a broker refuses it in favor of a later process start, even if another broker accepts it.
  raw_socket older(both[0], to_identity({3, ~std::uint64_t{0}}));
  older.send({.from = make_address(3, 0, 0), .id = wire::hello, .from_start_id = ~std::uint64_t{0}}, "worker");
  while (first.counts().processes < 3) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  process late(3, "worker", both);
  late.options.on_number_taken = [&] { has_gone = true; };
  late.join();
  for (int i = 0; i < 2000 && !has_gone; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_TRUE(has_gone);
}

TEST(zmq_broker, answers_full_when_a_process_does_not_read) {
  const scratch directory(0700);
  zmq_broker broker;
  auto options = at(directory.endpoint());
  options.limits.unreceived_bytes_max = 1u << 20;
  options.limits.silence_max = microseconds{20'000'000};
  ASSERT_TRUE(broker.start(options));
  process front(1, "gateway", {directory.endpoint()});
  front.join();
  raw_socket deaf(directory.endpoint(), to_identity({7, 77}));
  deaf.send({.from = make_address(7, 0, 0), .id = wire::hello, .from_start_id = 77}, "worker");
  front.expect_news(7, true);
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(front.link->send(note(make_address(7, 1, 1), front.at, std::string(100'000, 'x'))));
  }
  const auto back = next(*front.link);
  ASSERT_TRUE(back);
  ASSERT_EQ(back->head.id, actor::undeliverable::id);
  EXPECT_EQ(actor::decode<actor::undeliverable>(back->body)->why.code, errc::mailbox_full);
}

TEST(zmq_broker, counts_anew_what_is_on_its_way_when_one_side_has_begun_anew) {
  const scratch directory(0700);
  zmq_broker broker;
  auto options = at(directory.endpoint());
  options.limits.unreceived_bytes_max = 1u << 20;
  ASSERT_TRUE(broker.start(options));
  process front(1, "gateway", {directory.endpoint()});
  front.join();
  raw_socket back(directory.endpoint(), to_identity({7, 77}));
  const envelope hello{.from = make_address(7, 0, 0), .id = wire::hello, .from_start_id = 77};
  back.send(hello, "worker");
  front.expect_news(7, true);
  const auto flood = [&](int count) {
    for (int i = 0; i < count; ++i) {
      ASSERT_TRUE(front.link->send(note(make_address(7, 1, 1), front.at, std::string(100'000, 'x'))));
    }
  };
  flood(8);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  // It lost its link, no longer knows its count, and takes the broker's.
  back.send(hello, "worker");
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(700);
  std::vector<zmq::message_t> parts;
  while (std::chrono::steady_clock::now() < until) {
    if (!receive_parts(back.socket, parts)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      continue;
    }
    const auto head = read_envelope(view(parts[0]));
    if (!head || head->to.value != 0 || head->id != wire::beat) continue;
    const auto m = actor::decode<link_beat>(view(parts[1]));
    ASSERT_TRUE(m);
    back.send({.from = make_address(7, 0, 0), .id = wire::beat, .from_start_id = 77},
              actor::encode(link_beat{.received_bytes = m->sent_bytes, .sent_bytes = 0}));
  }
  flood(8);
  EXPECT_FALSE(next(*front.link, {}, std::chrono::milliseconds(300))) << "no frame comes back as full";
}

TEST(zmq_broker, gives_nobody_the_place_of_a_process_that_lives) {
  const scratch directory(0700);
  process front(1, "gateway", {}), back(2, "worker", {directory.endpoint()});
  ASSERT_TRUE(front.fabric.start_broker(at(directory.endpoint())));
  front.join();
  back.join();
  const auto start_id = back.expect_news(1, true).start_id;
  front.expect_news(2, true);
  // The gateway is inside; an outside process claims its identity and start, which every worker knows.
  const auto before = count_of(bridge_refusal::process);
  raw_socket thief(directory.endpoint(), to_identity({1, start_id}));
  thief.send({.from = make_address(1, 0, 0), .id = wire::hello, .from_start_id = start_id}, "worker");
  EXPECT_TRUE(is_refused_again(bridge_refusal::process, before));
  expect_talk(front, back);
}

TEST(zmq_broker, may_live_in_one_of_the_processes) {
  const scratch directory(0700);
  process front(1, "gateway", {}), back(2, "worker", {directory.endpoint()});
  ASSERT_TRUE(front.fabric.start_broker(at(directory.endpoint())));
  front.join();
  back.join();
  front.expect_news(2, true);
  back.expect_news(1, true);
  expect_talk(front, back);
}

}  // namespace
}  // namespace redline::transport
