#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>

#include "runtime/actor/address.hpp"
#include "runtime/actor/protocol.hpp"
#include "runtime/trace/span_context.hpp"

namespace redline::actor {

/// Increased when an envelope or a message changes in a way that old readers cannot skip.
inline constexpr std::uint32_t wire_version = 3;

/// The source and destination of a message, its type, and its subject.
struct envelope {
  std::uint32_t version = wire_version;
  address to;
  address from;
  message_id id;
  std::uint64_t subject = 0;  // see read_subject; comes back with `undeliverable`
  // The random numbers that the two processes drew when they started, filled in by the bridge. A message for a process
  // that has ended must not reach its successor. 0 means not set.
  std::uint64_t from_start_id = 0;
  std::uint64_t to_start_id = 0;
  std::optional<trace::span_context> span{};  // the span of the message, if it is traced

  bool operator==(const envelope&) const = default;
  static constexpr auto fields(auto& self) {
    return std::tie(self.version, self.to, self.from, self.id, self.subject, self.from_start_id, self.to_start_id,
                    self.span);
  }
};

/// One message in transit: the envelope, and the body as msgpack bytes.
struct frame {
  envelope head;
  std::string body;
};

}  // namespace redline::actor
