#include "transport/zmq/zmq_fabric.hpp"

#include <poll.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>
#include <zmq.hpp>

#include "runtime/base/environment.hpp"
#include "runtime/base/log.hpp"
#include "transport/zmq/zmq_bridge.hpp"
#include "transport/zmq/zmq_broker.hpp"
#include "transport/zmq/zmq_parts.hpp"

namespace redline::transport {

using actor::address;
using actor::envelope;
using actor::frame;

namespace {

std::string worker_endpoint(std::uint16_t number) { return "inproc://worker-" + std::to_string(number); }
constexpr std::size_t workers_max = 256;
constexpr const char* bridge_endpoint = "inproc://bridge";
constexpr const char* broker_endpoint = "inproc://broker";

void note_dropped(const std::string& what) { log_line(log_level::debug, "fabric", "dropped " + what); }

}  // namespace

/// A thread's sockets to other threads.
class outlets {
 public:
  explicit outlets(zmq::context_t& context) : context_(context) {}

  zmq::socket_t& to_worker(std::uint16_t number) {
    auto& socket = to_workers_.at(number);
    if (!socket) open(socket, worker_endpoint(number));
    return socket;
  }
  zmq::socket_t& to_bridge() {
    if (!to_bridge_) open(to_bridge_, bridge_endpoint);
    return to_bridge_;
  }
  void open(const fabric_layout& layout) {
    for (const auto number : layout.workers) to_worker(number);
  }

 private:
  void open(zmq::socket_t& socket, const std::string& endpoint) {
    socket = zmq::socket_t(context_, ZMQ_PUSH);
    socket.set(zmq::sockopt::sndhwm, inproc_frames_max);
    socket.set(zmq::sockopt::linger, 0);
    socket.connect(endpoint);
  }

  zmq::context_t& context_;
  std::array<zmq::socket_t, workers_max> to_workers_;
  zmq::socket_t to_bridge_;
};

struct zmq_fabric::state {
  actor::process_number process = 0;
  fabric_layout layout;
  zmq::context_t context{1};
  /// Indexed by worker number; links may be made while other threads send.
  std::array<std::atomic<bool>, workers_max> workers{};
  std::unique_ptr<zmq_broker> broker;
  std::unique_ptr<zmq_bridge> bridge;
  std::atomic<bool> bridge_running{false};
  std::thread bridge_thread;
};

class zmq_link final : public actor::link {
 public:
  zmq_link(zmq_fabric::state& fabric, std::uint16_t number)
      : fabric_(fabric), inbox_(fabric.context, ZMQ_PULL), outlets_(fabric.context) {
    inbox_.set(zmq::sockopt::rcvhwm, inproc_frames_max);
    inbox_.set(zmq::sockopt::linger, 0);
    inbox_.bind(worker_endpoint(number));
    outlets_.open(fabric.layout);
    if (fabric.layout.has_bridge) (void)outlets_.to_bridge();
  }

  result<void> send(const frame& f) override try {
    const actor::process_number process = actor::process_of(f.head.to);
    const std::uint16_t number = actor::worker_of(f.head.to);
    const bool is_here = process == fabric_.process;
    if (is_here) {
      if (number >= fabric_.workers.size() || !fabric_.workers[number]) {
        return failure{errc::unreachable, "no worker " + std::to_string(number) + " in this process"};
      }
    } else if (!fabric_.bridge_running) {
      return failure{errc::unreachable, "no bridge is running to reach process " + std::to_string(process)};
    }
    if (!send_parts(is_here ? outlets_.to_worker(number) : outlets_.to_bridge(), actor::encode(f.head), f.body)) {
      return failure{errc::mailbox_full,
                     "the queue to " + (is_here ? worker_endpoint(number) : bridge_endpoint) + " is full"};
    }
    return {};
  } catch (const zmq::error_t& e) {
    return failure{errc::unreachable, std::string("ZeroMQ: ") + e.what()};
  }

  std::optional<frame> receive() override try {
    while (receive_parts(inbox_, parts_)) {
      auto head = parts_.size() == 2 ? read_envelope(view(parts_[0])) : std::nullopt;
      if (head) return frame{std::move(*head), std::string(view(parts_[1]))};
      note_dropped("bytes that are not a frame");
    }
    return std::nullopt;
  } catch (const zmq::error_t&) {
    return std::nullopt;  // the context is closing
  }

  void wait(microseconds at_most) override try {
    // zmq::poll counts in milliseconds, and a pass may wait for less. The descriptor reports only changes, so frames
    // that are already there are checked first.
    if ((inbox_.get(zmq::sockopt::events) & ZMQ_POLLIN) != 0) return;
    pollfd changed{descriptor(), POLLIN, 0};
    const timespec patience{.tv_sec = at_most.count() / 1'000'000, .tv_nsec = at_most.count() % 1'000'000 * 1'000};
    (void)::ppoll(&changed, 1, &patience, nullptr);
  } catch (const zmq::error_t&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // interrupted, or the context is closing
  }

  [[nodiscard]] int descriptor() { return inbox_.get(zmq::sockopt::fd); }

 private:
  zmq_fabric::state& fabric_;
  zmq::socket_t inbox_;
  outlets outlets_;
  std::vector<zmq::message_t> parts_;
};

zmq_fabric::zmq_fabric(actor::process_number process, fabric_layout layout) : state_(std::make_unique<state>()) {
  state_->process = process;
  state_->layout = std::move(layout);
}
zmq_fabric::~zmq_fabric() { stop_bridge(); }

std::unique_ptr<actor::link> zmq_fabric::make_link(std::uint16_t number) {
  REDLINE_ASSERT(number < state_->workers.size() && !state_->workers[number], "two links for one worker");
  auto made = std::make_unique<zmq_link>(*state_, number);
  state_->workers[number] = true;
  return made;
}

result<void> zmq_fabric::start_broker(const broker_options& options) {
  auto broker = std::make_unique<zmq_broker>(&state_->context);
  REDLINE_TRY(broker->start(options, broker_endpoint));
  state_->broker = std::move(broker);
  return {};
}

result<void> zmq_fabric::start_bridge(bridge_options options, std::vector<address> watchers) {
  for (const auto& endpoint : options.joins) {
    REDLINE_TRY(check_endpoint(endpoint, options.own_keys.has_value(), options.insecure_plaintext));
  }
  if (state_->broker) options.joins.push_back(broker_endpoint);
  try {
    zmq::socket_t outbound(state_->context, ZMQ_PULL);
    outbound.set(zmq::sockopt::rcvhwm, inproc_frames_max);
    outbound.bind(bridge_endpoint);
    auto to_workers = std::make_shared<outlets>(state_->context);
    to_workers->open(state_->layout);
    zmq_bridge::inside inside{
        .has_worker = [s = state_.get()](std::uint16_t n) { return n < s->workers.size() && s->workers[n]; },
        .deliver =
            [to_workers](const envelope& head, std::string_view body) {
              return send_parts(to_workers->to_worker(actor::worker_of(head.to)), actor::encode(head), body);
            }};
    const process_start self{state_->process, real_environment().random() | 1};
    state_->bridge = std::make_unique<zmq_bridge>(state_->context, self, std::move(options), std::move(watchers),
                                                  std::move(outbound), std::move(inside));
    state_->bridge_running = true;
    state_->bridge_thread = std::thread([s = state_.get()] {
      pthread_setname_np(pthread_self(), "redline-bridge");
      s->bridge->run(s->bridge_running);
    });
  } catch (const zmq::error_t& e) {
    return failure{errc::io_error, std::string("cannot join the pool: ") + e.what()};
  }
  return {};
}

void zmq_fabric::update_card(const std::string& card) {
  if (state_->bridge) state_->bridge->update_card(card);
}

void zmq_fabric::tell_peers_again() {
  if (state_->bridge) state_->bridge->tell_again();
}

const zmq_broker* zmq_fabric::broker() const { return state_->broker.get(); }

void zmq_fabric::stop_bridge() {
  state_->bridge_running = false;
  if (state_->bridge_thread.joinable()) state_->bridge_thread.join();
  state_->bridge.reset();
  state_->broker.reset();
}

actor::process_number zmq_fabric::process() const { return state_->process; }

int readable_descriptor(actor::link& l) {
  auto* typed = dynamic_cast<zmq_link*>(&l);
  REDLINE_ASSERT(typed != nullptr, "not a link of a zmq_fabric");
  return typed->descriptor();
}

}  // namespace redline::transport
