#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include "runtime/actor/frame.hpp"
#include "runtime/base/environment.hpp"

namespace redline::transport {

// What bridges and brokers exchange in addition to the frames that they carry. A bridge dials brokers, sends a hello
// with its process's card, and is notified of the processes that it may work with. Frames go to a process only through
// a broker that has announced it.

/// A process start: the process's number, and a random number drawn at the start.
struct process_start {
  actor::process_number process = 0;
  std::uint64_t start_id = 0;
  bool operator==(const process_start&) const = default;
  static constexpr auto fields(auto& self) { return std::tie(self.process, self.start_id); }
};

/// The identity of the process's connection at a broker, and back.
std::string to_identity(const process_start& who);
std::optional<process_start> parse_identity(std::string_view identity);

/// The ids of messages to address 0.
namespace wire {
inline constexpr actor::message_id hello{
    0};  // to a broker: the card; from a broker: broker_hello, the process is accepted
inline constexpr actor::message_id refusal{1};  // from a broker: why the process may not take part
inline constexpr actor::message_id member{2};   // from a broker: member_news
inline constexpr actor::message_id beat{3};     // both ways: link_beat
inline constexpr actor::message_id bye{4};      // both ways: why the link ends
inline constexpr actor::message_id unknown{5};  // from a broker: say hello first
inline constexpr actor::message_id taken{6};    // from a broker: the `start_id` of another process that has the number
}  // namespace wire

/// A broker has accepted a process.
struct broker_hello {
  std::uint32_t protocol = 0;  // pool_rules::protocol; 0 if the broker does not state it
  static constexpr auto fields(auto& self) { return std::tie(self.protocol); }
};

/// A process joined, changed its card, or left.
struct member_news {
  actor::process_number process = 0;
  std::uint64_t start_id = 0;
  bool reachable = false;
  std::string card;
  std::string why;  // why it left
  static constexpr auto fields(auto& self) {
    return std::tie(self.process, self.start_id, self.reachable, self.card, self.why);
  }
};

/// A heartbeat with the bytes of frames received and sent so far on this link, to bound the bytes in flight. Frames
/// keep their order: what was sent before a heartbeat and has not arrived by then is lost, and the receiver adopts the
/// sender's count. So counts agree again after any loss, and after either side restarts.
struct link_beat {
  std::uint64_t received_bytes = 0;
  std::uint64_t sent_bytes = 0;
  static constexpr auto fields(auto& self) { return std::tie(self.received_bytes, self.sent_bytes); }
};

/// Decides which processes may take part, and what each may send. Called from the threads of bridges and brokers.
struct pool_rules {
  /// The version of the messages between processes; brokers and bridges of different versions refuse each other.
  std::uint32_t protocol = 0;
  /// Reads the role from a process's card, or fails with the reason that the process may not take part.
  std::function<result<std::uint8_t>(std::string_view card)> read_role;
  /// Whether processes of these roles work together; otherwise neither is notified of the other.
  std::function<bool(std::uint8_t, std::uint8_t)> may_meet;
  /// Whether a process of a role may send such messages to actors of other processes.
  std::function<bool(std::uint8_t role, actor::message_id)> may_send;
};

/// How a link between a bridge and a broker is timed and bounded.
struct link_limits {
  microseconds heartbeat{250'000};
  microseconds silence_max{3'000'000};            // after which the other side counts as lost
  microseconds refused_pause{10'000'000};         // after a refusal, until a bridge sends another hello
  std::uint32_t message_bytes_max = 0;            // 0 means sizes::message_bytes_max
  std::uint64_t unreceived_bytes_max = 1u << 26;  // in flight in one direction; more is refused as full
};

/// The maximum size of a card.
inline constexpr std::size_t card_bytes_max = 64u << 10;
/// The maximum size of a reason; a longer one is cut.
inline constexpr std::size_t reason_bytes_max = 1024;

/// The envelope and body that report to a sender that its message did not arrive. nullopt if the message has no sender
/// or is such a report itself.
std::optional<actor::frame> undeliverable_news(const actor::envelope& head, failure why);

}  // namespace redline::transport
