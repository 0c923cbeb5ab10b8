#pragma once

#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "runtime/actor/protocol.hpp"
#include "runtime/kv/page_table.hpp"

namespace redline::actors {

/// One sequence's change of cache: forget all but the first `keep_count` tokens, then make room for `append_count` more.
struct page_want {
  sequence_id sequence;
  std::uint32_t keep_count = 0;
  std::uint32_t append_count = 0;
  static constexpr auto fields(auto& self) { return std::tie(self.sequence, self.keep_count, self.append_count); }
};

// All of these are data: a release must not overtake the reservation that it undoes.

/// Asks the cache manager for room for one batch. Answered with `page_grant`. May be repeated: each want says how many
/// tokens the table has before it grows.
struct reserve_pages {
  static constexpr actor::message_id id{0x0201};
  static constexpr std::string_view name = "reserve_pages";

  std::uint64_t batch = 0;
  std::vector<page_want> wants;
  static constexpr auto fields(auto& self) { return std::tie(self.batch, self.wants); }
};

/// For each want in order: the sequence's whole table, or nothing when the pool has too few pages.
struct page_grant {
  static constexpr actor::message_id id{0x0202};
  static constexpr std::string_view name = "page_grant";

  std::uint64_t batch = 0;
  std::vector<std::optional<std::vector<kv::piece>>> tables;
  std::uint32_t free_count = 0;
  static constexpr auto fields(auto& self) { return std::tie(self.batch, self.tables, self.free_count); }
};

/// Gives all pages of a sequence back.
struct release_pages {
  static constexpr actor::message_id id{0x0203};
  static constexpr std::string_view name = "release_pages";

  sequence_id sequence;
  static constexpr auto fields(auto& self) { return std::tie(self.sequence); }
};

/// Gives the pages of all sequences back: the storage behind them is gone.
struct drop_all_pages {
  static constexpr actor::message_id id{0x0204};
  static constexpr std::string_view name = "drop_all_pages";

  static constexpr auto fields(auto&) { return std::tie(); }
};

}  // namespace redline::actors
