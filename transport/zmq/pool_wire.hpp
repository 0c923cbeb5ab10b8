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

// What bridges and brokers say to each other beside the frames that they carry. A bridge dials brokers, says hello with
// its process's card, and is told of the processes that it may work with. Frames go to a process only through a
// broker that has told of it.

/// A run of a process: its number, and what it drew when it started.
struct incarnation {
  actor::process_number process = 0;
  std::uint64_t life = 0;
  bool operator==(const incarnation&) const = default;
  static constexpr auto fields(auto& self) { return std::tie(self.process, self.life); }
};

/// The identity of its connection at a broker, and back.
std::string to_identity(const incarnation& who);
std::optional<incarnation> parse_identity(std::string_view identity);

/// The numbers of what goes to address 0.
namespace wire {
inline constexpr actor::message_id hello{0};    // to a broker: the card. From one: broker_hello, it has been taken
inline constexpr actor::message_id refusal{1};  // from a broker: why the process may not take part
inline constexpr actor::message_id member{2};   // from a broker: member_news
inline constexpr actor::message_id beat{3};     // both ways: link_beat
inline constexpr actor::message_id bye{4};      // both ways: why the link ends
inline constexpr actor::message_id unknown{5};  // from a broker: say hello first
inline constexpr actor::message_id taken{6};    // from a broker: another process has the number; its life
}  // namespace wire

/// A broker has taken a process.
struct broker_hello {
  std::uint32_t protocol = 0;  // pool_rules::protocol; 0: a broker that does not say it
  static constexpr auto fields(auto& self) { return std::tie(self.protocol); }
};

/// A process came, says something else of itself, or is gone.
struct member_news {
  actor::process_number process = 0;
  std::uint64_t life = 0;
  bool reachable = false;
  std::string card;
  std::string why;  // it is gone
  static constexpr auto fields(auto& self) {
    return std::tie(self.process, self.life, self.reachable, self.card, self.why);
  }
};

/// A sign of life, with the bytes of frames received and sent so far on this link: what is sent and not yet received is
/// bounded. Frames keep their order, so what was sent before a beat and has not come by then is lost, and the receiver
/// takes the sender's count for its own; so counts agree again after any loss, or when one side has begun anew.
struct link_beat {
  std::uint64_t received_bytes = 0;
  std::uint64_t sent_bytes = 0;
  static constexpr auto fields(auto& self) { return std::tie(self.received_bytes, self.sent_bytes); }
};

/// Who may take part, and who may say what. Called from the threads of bridges and brokers.
struct pool_rules {
  /// The number of what processes say to each other; brokers and bridges of two numbers refuse each other.
  std::uint32_t protocol = 0;
  /// The role of a process that says this of itself; the failure says why it may not take part.
  std::function<result<std::uint8_t>(std::string_view card)> read_role;
  /// Whether processes of these roles work together; the others do not hear of each other.
  std::function<bool(std::uint8_t, std::uint8_t)> may_meet;
  /// Whether a process of a role may send such messages to actors of others.
  std::function<bool(std::uint8_t role, actor::message_id)> may_send;
};

/// How a link between a bridge and a broker is timed and bounded.
struct link_limits {
  microseconds heartbeat{250'000};
  microseconds silence_max{3'000'000};            // then the other side counts as lost
  microseconds refused_pause{10'000'000};         // after a refusal, until a bridge says hello again
  std::uint32_t message_bytes_max = 0;            // 0: sizes::message_bytes_max
  std::uint64_t unreceived_bytes_max = 1u << 26;  // on their way in one direction; more is refused as full
};

/// The most a card may have.
inline constexpr std::size_t card_bytes_max = 64u << 10;
/// The most characters of a reason that is believed.
inline constexpr std::size_t reason_bytes_max = 1024;

/// A frame's envelope and body that tell a sender that its message did not arrive; null for one that nobody sent or
/// that is such news itself.
std::optional<actor::frame> undeliverable_news(const actor::envelope& head, failure why);

}  // namespace redline::transport
