#pragma once

#include <string_view>
#include <tuple>
#include <vector>

#include "runtime/actor/protocol.hpp"

// What a placer asks of a cache manager.

namespace redline::actors {

/// Asks which prefixes are kept: what has changed since a revision that an earlier answer had; 0: everything. Answered
/// with `kept_prefixes`.
struct read_kept {
  static constexpr actor::message_id id{0x020a};
  static constexpr std::string_view name = "read_kept";

  std::uint64_t revision = 0;
  static constexpr auto fields(auto& self) { return std::tie(self.revision); }
};

/// The most beginnings that a worker says it keeps: a quarter of a million tokens.
inline constexpr std::size_t kept_keys_max = 1024;

/// Beginnings of texts whose KV is kept, by `prefix_key`; those that were used last. A hint: each may be gone when
/// somebody wants it.
struct kept_prefixes {
  static constexpr actor::message_id id{0x020b};
  static constexpr std::string_view name = "kept_prefixes";

  std::uint64_t revision = 0;
  bool is_all = false;  // `added` is everything
  std::vector<std::uint64_t> added;
  std::vector<std::uint64_t> dropped;
  static constexpr auto fields(auto& self) { return std::tie(self.revision, self.is_all, self.added, self.dropped); }
};

}  // namespace redline::actors
