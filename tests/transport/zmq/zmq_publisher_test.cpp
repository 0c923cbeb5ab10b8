#include "transport/zmq/zmq_publisher.hpp"

#include <set>

#include "tests/transport/zmq/pool_fixture.hpp"
#include "transport/zmq/zmq_parts.hpp"

namespace redline::transport {
namespace {

std::uint64_t number_of(const zmq::message_t& m) {
  std::uint64_t number = 0;
  for (const char c : view(m)) number = number << 8 | static_cast<unsigned char>(c);
  return number;
}

std::string as_bytes(std::uint64_t number) {
  std::string out;
  for (int shift = 56; shift >= 0; shift -= 8) out += static_cast<char>(number >> shift);
  return out;
}

class a_publisher : public ::testing::Test {
 protected:
  void start(publisher_options more = {}) {
    more.endpoint = "ipc://" + folder.path() + "/events";
    more.replay_endpoint = "ipc://" + folder.path() + "/replay";
    more.topic = "kv@here@model";
    auto made = zmq_publisher::start(more);
    ASSERT_TRUE(made) << made.error().describe();
    publisher = std::move(*made);
  }
  zmq::socket_t subscribe(int queue_max = 1000) {
    zmq::socket_t s(context, ZMQ_SUB);
    s.set(zmq::sockopt::linger, 0);
    s.set(zmq::sockopt::rcvhwm, queue_max);
    s.set(zmq::sockopt::rcvtimeo, 20'000);
    s.set(zmq::sockopt::subscribe, "kv@");
    s.connect(publisher->endpoint());
    return s;
  }
  std::vector<zmq::message_t> receive(zmq::socket_t& s) {
    std::vector<zmq::message_t> parts;
    do {
      zmq::message_t m;
      if (!s.recv(m)) break;
      parts.push_back(std::move(m));
    } while (parts.back().more());
    return parts;
  }
  /// Returns the answer to a request for past messages, by number.
  std::vector<std::pair<std::uint64_t, std::string>> ask(std::uint64_t from) {
    zmq::socket_t s(context, ZMQ_DEALER);
    s.set(zmq::sockopt::linger, 0);
    s.set(zmq::sockopt::rcvtimeo, 20'000);
    s.connect(publisher->replay_endpoint());
    s.send(zmq::message_t(), zmq::send_flags::sndmore);
    s.send(zmq::buffer(as_bytes(from)), zmq::send_flags::none);
    std::vector<std::pair<std::uint64_t, std::string>> out;
    for (;;) {
      const auto parts = receive(s);
      if (parts.size() != 3 || parts[0].size() != 0 || parts[1].size() != 8) {
        ADD_FAILURE() << parts.size() << " parts";
        return out;
      }
      if (number_of(parts[1]) == ~std::uint64_t{0}) return out;
      out.emplace_back(number_of(parts[1]), std::string(view(parts[2])));
    }
  }
  /// Publishes until the subscriber, which takes a moment to connect, has received a message; returns its number.
  std::uint64_t publish_until_heard(zmq::socket_t& s) {
    s.set(zmq::sockopt::rcvtimeo, 20);
    for (;;) {
      publisher->publish("anybody?");
      const auto parts = receive(s);
      if (parts.size() != 3) continue;
      s.set(zmq::sockopt::rcvtimeo, 20'000);
      return number_of(parts[1]);
    }
  }

  const scratch folder{0700};
  zmq::context_t context{1};
  std::unique_ptr<zmq_publisher> publisher;
};

TEST_F(a_publisher, numbers_its_messages_under_its_topic) {
  start();
  auto s = subscribe();
  std::uint64_t last = publish_until_heard(s);
  publisher->publish("one");
  publisher->publish(std::string(100'000, 'x'));
  std::vector<zmq::message_t> parts;
  do parts = receive(s);
  while (parts.size() == 3 && view(parts[2]) == "anybody?" && number_of(parts[1]) == ++last);
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(view(parts[0]), "kv@here@model");
  EXPECT_EQ(view(parts[2]), "one");
  const auto number = number_of(parts[1]);
  parts = receive(s);
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(number_of(parts[1]), number + 1);
  EXPECT_EQ(parts[2].size(), 100'000U);
}

TEST_F(a_publisher, gives_messages_again_from_any_number_on) {
  start();
  for (int i = 0; i < 10; ++i) publisher->publish("message " + std::to_string(i));
  // The messages are in flight to the publisher's thread.
  while (ask(0).size() < 10) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const auto rest = ask(7);
  ASSERT_EQ(rest.size(), 3U);
  EXPECT_EQ(rest[0], (std::pair<std::uint64_t, std::string>{7, "message 7"}));
  EXPECT_EQ(rest[2].first, 9U);
  EXPECT_TRUE(ask(10).empty());
}

TEST_F(a_publisher, keeps_only_so_many_messages_and_bytes) {
  start({.kept_max = 4, .kept_bytes_max = 50});
  for (int i = 0; i < 9; ++i) publisher->publish("a");
  while (ask(8).empty()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(ask(0).front().first, 5U);
  publisher->publish(std::string(49, 'x'));
  while (ask(9).empty()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(ask(0).front().first, 8U) << "one byte and 49";
}

TEST_F(a_publisher, never_waits_for_a_subscriber_that_does_not_read_and_it_can_fill_its_gap) {
  start({.kept_max = 10'000, .queue_max = 10});
  auto slow = subscribe(1);
  auto quick = subscribe(100'000);
  std::uint64_t last = publish_until_heard(quick);
  (void)publish_until_heard(slow);
  const std::string large(20'000, 'x');
  constexpr int count = 2000;
  for (int i = 0; i < count; ++i) {
    publisher->publish(large);
    // It reads one message at a time, including those that were to wake the slow one, so its own queue is never full.
    for (bool is_old = true; is_old;) {
      const auto parts = receive(quick);
      ASSERT_EQ(parts.size(), 3U) << "message " << i << " never came";
      ASSERT_EQ(number_of(parts[1]), ++last) << "a reader misses nothing";
      is_old = view(parts[2]) == "anybody?";
    }
  }
  // The slow one gets what fits into its queue and what is in flight (in system buffers of about 200 kB).
  std::set<std::uint64_t> got;
  slow.set(zmq::sockopt::rcvtimeo, 500);
  for (auto parts = receive(slow); parts.size() == 3; parts = receive(slow)) got.insert(number_of(parts[1]));
  EXPECT_LT(got.size(), 200U) << "its queue has no bound";
  // The rest can be requested, and once it reads it receives messages again.
  for (const auto& [number, payload] : ask(0)) got.insert(number);
  EXPECT_EQ(got.size(), last + 1) << "no gap is left";
  EXPECT_EQ(*got.rbegin(), last);
  EXPECT_GT(publish_until_heard(slow), last);
}

TEST_F(a_publisher, publishes_while_somebody_asks_for_everything_and_reads_nothing) {
  start({.kept_max = 100});
  auto quick = subscribe(100'000);
  std::uint64_t last = publish_until_heard(quick);
  zmq::socket_t rude(context, ZMQ_DEALER);
  rude.set(zmq::sockopt::linger, 0);
  rude.set(zmq::sockopt::rcvhwm, 1);
  rude.connect(publisher->replay_endpoint());
  const std::string large(20'000, 'x');
  for (int i = 0; i < 300; ++i) {
    for (int n = 0; n < 3; ++n) rude.send(zmq::buffer(as_bytes(0)), zmq::send_flags::dontwait);
    publisher->publish(large);
    for (bool is_old = true; is_old;) {
      const auto parts = receive(quick);
      ASSERT_EQ(parts.size(), 3U) << "message " << i << " never came";
      ASSERT_EQ(number_of(parts[1]), ++last);
      is_old = view(parts[2]) == "anybody?";
    }
  }
  EXPECT_EQ(ask(last).size(), 1U) << "others are answered";
  // The queue of the rude one takes as much as one answer has, plus what is in flight.
  std::size_t answers = 0;
  rude.set(zmq::sockopt::rcvtimeo, 500);
  while (receive(rude).size() == 2) ++answers;
  EXPECT_LT(answers, 600U);
}

TEST_F(a_publisher, takes_no_question_that_is_no_number) {
  start();
  publisher->publish("x");
  const auto before = count_of(bridge_refusal::malformed);
  zmq::socket_t s(context, ZMQ_DEALER);
  s.set(zmq::sockopt::linger, 0);
  s.connect(publisher->replay_endpoint());
  s.send(zmq::buffer(std::string("0")), zmq::send_flags::none);
  EXPECT_TRUE(is_refused_again(bridge_refusal::malformed, before));
  for (int i = 0; i < 4; ++i) s.send(zmq::buffer(as_bytes(0)), zmq::send_flags::sndmore);
  s.send(zmq::buffer(as_bytes(0)), zmq::send_flags::none);
  EXPECT_TRUE(is_refused_again(bridge_refusal::malformed, before + 1));
  while (ask(0).empty()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

TEST(publisher_options, want_a_private_folder_or_plain_tcp_asked_for_by_name) {
  EXPECT_FALSE(zmq_publisher::start({.endpoint = "tcp://127.0.0.1:*"}));
  EXPECT_FALSE(zmq_publisher::start({.endpoint = "inproc://x"}));
  const scratch open(0755);
  EXPECT_FALSE(zmq_publisher::start({.endpoint = open.endpoint()}));
  const auto plain = zmq_publisher::start({.endpoint = "tcp://127.0.0.1:*", .insecure_plaintext = true});
  ASSERT_TRUE(plain) << plain.error().describe();
  EXPECT_EQ((*plain)->endpoint().find('*'), std::string::npos);
  const auto same = zmq_publisher::start({.endpoint = (*plain)->endpoint(), .insecure_plaintext = true});
  EXPECT_FALSE(same) << "the port is taken";
}

}  // namespace
}  // namespace redline::transport
