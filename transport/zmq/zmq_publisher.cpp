#include "transport/zmq/zmq_publisher.hpp"

#include <pthread.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "transport/zmq/bridge_counts.hpp"
#include "transport/zmq/zmq_endpoint.hpp"
#include "transport/zmq/zmq_parts.hpp"

namespace redline::transport {
namespace {

constexpr const char* inside = "inproc://publisher";
constexpr int inside_max = 4096;
constexpr std::uint64_t no_more = ~std::uint64_t{0};
constexpr int request_bytes_max = 64;  // for a subscription's topic or a replay request
constexpr auto wake = std::chrono::milliseconds(100);

using number_bytes = std::array<char, 8>;

number_bytes to_bytes(std::uint64_t number) {
  number_bytes out{};
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<char>(number >> (8 * (7 - i)));
  return out;
}

std::optional<std::uint64_t> parse_number(std::string_view bytes) {
  if (bytes.size() != 8) return std::nullopt;
  std::uint64_t number = 0;
  for (const char c : bytes) number = number << 8 | static_cast<unsigned char>(c);
  return number;
}

}  // namespace

zmq_publisher::zmq_publisher(publisher_options options)
    : options_(std::move(options)),
      outbox_(context_, ZMQ_PUSH),
      inbox_(context_, ZMQ_PULL),
      subscribers_(context_, ZMQ_PUB),
      replays_(context_, ZMQ_ROUTER) {}

result<std::unique_ptr<zmq_publisher>> zmq_publisher::start(publisher_options options) try {
  for (const auto& endpoint : {options.endpoint, options.replay_endpoint}) {
    if (!endpoint.empty()) REDLINE_TRY(check_endpoint(endpoint, false, options.insecure_plaintext));
  }
  std::unique_ptr<zmq_publisher> p(new zmq_publisher(std::move(options)));
  REDLINE_TRY(p->bind());
  p->thread_ = std::thread([self = p.get()] {
    pthread_setname_np(pthread_self(), "redline-events");
    self->run();
  });
  return p;
} catch (const zmq::error_t& e) {
  return failure{errc::io_error, std::string("cannot publish: ") + e.what()};
}

result<void> zmq_publisher::bind() {
  outbox_.set(zmq::sockopt::sndhwm, inside_max);
  outbox_.set(zmq::sockopt::linger, 0);
  inbox_.set(zmq::sockopt::rcvhwm, inside_max);
  inbox_.bind(inside);
  outbox_.connect(inside);
  const auto open = [&](zmq::socket_t& socket, const std::string& endpoint, std::string& bound) -> result<void> {
    REDLINE_TRY_ASSIGN(const int lock, lock_endpoint(endpoint));
    if (lock >= 0) locks_.push_back(lock);
    socket.set(zmq::sockopt::linger, 0);
    socket.set(zmq::sockopt::maxmsgsize, std::int64_t{request_bytes_max});
    socket.set(zmq::sockopt::handshake_ivl, 5000);
    socket.set(zmq::sockopt::tcp_keepalive, 1);
    try {
      socket.bind(endpoint);
    } catch (const zmq::error_t& e) {
      return failure{errc::io_error, "cannot listen at " + endpoint + ": " + e.what()};
    }
    bound = socket.get(zmq::sockopt::last_endpoint);
    return {};
  };
  subscribers_.set(zmq::sockopt::sndhwm, options_.queue_max);
  REDLINE_TRY(open(subscribers_, options_.endpoint, bound_));
  if (options_.replay_endpoint.empty()) return {};
  // All stored messages fit into one answer; a subscriber that asks again without reading causes an error.
  replays_.set(zmq::sockopt::router_mandatory, 1);
  replays_.set(zmq::sockopt::sndhwm, static_cast<int>(options_.kept_max) + 1);
  return open(replays_, options_.replay_endpoint, replay_bound_);
}

zmq_publisher::~zmq_publisher() {
  running_ = false;
  if (thread_.joinable()) thread_.join();
  for (const int lock : locks_) ::close(lock);
}

void zmq_publisher::publish(std::string_view payload) {
  const auto number = to_bytes(next_++);
  (void)send_parts(outbox_, {number.data(), number.size()}, payload);
}

void zmq_publisher::run() {
  while (running_) {
    try {
      std::vector<zmq::pollitem_t> items{{inbox_.handle(), 0, ZMQ_POLLIN, 0}, {replays_.handle(), 0, ZMQ_POLLIN, 0}};
      zmq::poll(items.data(), items.size(), wake);
      if ((items[0].revents & ZMQ_POLLIN) != 0) take_in();
      if ((items[1].revents & ZMQ_POLLIN) != 0) replay();
    } catch (const zmq::error_t& e) {
      if (e.num() == ETERM) return;
    }
  }
}

void zmq_publisher::take_in() {
  std::vector<zmq::message_t> parts;
  while (receive_parts(inbox_, parts)) {
    const auto number = parts.size() == 2 ? parse_number(view(parts[0])) : std::nullopt;
    if (!number) continue;
    kept_bytes_ += parts[1].size();
    kept_.push_back({*number, {}});
    kept_.back().payload.copy(parts[1]);
    while (kept_.size() > options_.kept_max || kept_bytes_ > options_.kept_bytes_max) {
      kept_bytes_ -= kept_.front().payload.size();
      kept_.pop_front();
    }
    // PUB checks once a millisecond what its subscribers have read, and drops messages for full queues, even if a
    // subscriber reads as fast as messages come. Querying its state makes it check now.
    (void)subscribers_.get(zmq::sockopt::events);
    // Never waits: PUB drops messages for slow subscribers.
    subscribers_.send(zmq::buffer(options_.topic), zmq::send_flags::sndmore);
    subscribers_.send(parts[0], zmq::send_flags::sndmore);
    subscribers_.send(parts[1], zmq::send_flags::none);
  }
}

/// The parts are [identity] ["" of a REQ] number. Handles one request, so that new messages are published between
/// requests.
void zmq_publisher::replay() {
  std::vector<zmq::message_t> parts;
  if (!receive_parts(replays_, parts)) return;
  const bool has_empty = parts.size() == 3 && parts[1].size() == 0;
  const auto from = parts.size() == 2 || has_empty ? parse_number(view(parts.back())) : std::nullopt;
  if (!from) {
    return note_refusal(bridge_refusal::malformed, "a request for past events that is not a number of 8 bytes");
  }
  const std::string identity(view(parts[0]));
  /// Returns false if the queue of a subscriber that does not read is full. Throws if the subscriber is gone.
  const auto send = [&](std::uint64_t number, zmq::message_t payload) {
    const auto head = to_bytes(number);
    if (!replays_.send(zmq::buffer(identity), zmq::send_flags::sndmore | zmq::send_flags::dontwait)) return false;
    if (has_empty) replays_.send(zmq::message_t(), zmq::send_flags::sndmore | zmq::send_flags::dontwait);
    replays_.send(zmq::buffer(head), zmq::send_flags::sndmore | zmq::send_flags::dontwait);
    replays_.send(std::move(payload), zmq::send_flags::dontwait);
    return true;
  };
  for (auto& message : kept_) {
    if (message.number < *from) continue;
    zmq::message_t payload;
    payload.copy(message.payload);
    if (!send(message.number, std::move(payload))) return;
  }
  (void)send(no_more, {});
}

}  // namespace redline::transport
