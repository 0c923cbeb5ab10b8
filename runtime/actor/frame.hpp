#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>

#include "runtime/actor/address.hpp"
#include "runtime/actor/protocol.hpp"
#include "runtime/trace/span_context.hpp"

namespace redline::actor {

/// Raised when an envelope or a message changes in a way that old readers cannot skip.
inline constexpr std::uint32_t wire_version = 3;

/// Where a message comes from, where it goes, what it is, and what it is about. (The fifth field of version 1 was a
/// string; addresses of version 2 had 16 bits for the process.)
struct envelope {
  std::uint32_t version = wire_version;
  address to;
  address from;
  message_id id;
  std::uint64_t subject = 0;  // see read_subject; comes back with `undeliverable`
  // Between processes the bridge fills these in: the number that each process drew when it started. What is meant for
  // a process that has died is not for its successor. 0: not said.
  std::uint64_t from_life = 0;
  std::uint64_t to_life = 0;
  std::optional<trace::span_context> span{};  // what the message is a part of, if that is traced

  bool operator==(const envelope&) const = default;
  static constexpr auto fields(auto& self) {
    return std::tie(self.version, self.to, self.from, self.id, self.subject, self.from_life, self.to_life, self.span);
  }
};

/// One message on its way: the envelope, and the body as msgpack bytes.
struct frame {
  envelope head;
  std::string body;
};

}  // namespace redline::actor
