#pragma once

#include <cstdint>
#include <string>
#include <tuple>

#include "runtime/actor/address.hpp"
#include "runtime/actor/protocol.hpp"

namespace redline::actor {

/// Raised when an envelope or a message changes in a way that old readers cannot skip.
inline constexpr std::uint32_t wire_version = 1;

/// Where a message comes from, where it goes and what it is. Version 1 once had a fifth field, a trace string that was
/// always empty: readers skip fields they do not know and default those that are missing, so the number stayed.
struct envelope {
  std::uint32_t version = wire_version;
  address to;
  address from;
  message_id id;

  bool operator==(const envelope&) const = default;
  static constexpr auto fields(auto& self) { return std::tie(self.version, self.to, self.from, self.id); }
};

/// One message on its way: the envelope, and the body as msgpack bytes.
struct frame {
  envelope head;
  std::string body;
};

}  // namespace redline::actor
