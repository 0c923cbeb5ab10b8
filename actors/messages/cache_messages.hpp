#pragma once

#include <string_view>
#include <tuple>
#include <vector>

#include "runtime/actor/protocol.hpp"

// Messages between a placer and a cache manager.

namespace redline::actors {

/// Asks what has changed in the list of cached prefixes since the revision of an earlier answer; revision 0 asks for
/// all of it. Answered with `kept_prefixes`.
struct read_kept {
  static constexpr actor::message_id id{0x020a};
  static constexpr std::string_view name = "read_kept";

  std::uint64_t revision = 0;
  static constexpr auto fields(auto& self) { return std::tie(self.revision); }
};

/// The most cached prefixes that a worker lists: a quarter of a million tokens.
inline constexpr std::size_t kept_keys_max = 1024;

/// The most recently used cached prefixes, by `prefix_key`. A hint: any of them may be gone by the time it is wanted.
struct kept_prefixes {
  static constexpr actor::message_id id{0x020b};
  static constexpr std::string_view name = "kept_prefixes";

  std::uint64_t revision = 0;
  bool is_all = false;  // `added` is the whole list
  std::vector<std::uint64_t> added;
  std::vector<std::uint64_t> dropped;
  static constexpr auto fields(auto& self) { return std::tie(self.revision, self.is_all, self.added, self.dropped); }
};

}  // namespace redline::actors
