#pragma once

#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "runtime/actor/protocol.hpp"
#include "runtime/kv/splice_policy.hpp"

namespace redline::actors {

/// One sequence's change of cache: forget all but the first `keep_count` tokens, then make room for `append_count` more
/// behind the first `at` of them.
struct page_want {
  sequence_id sequence;
  std::uint32_t keep_count = 0;
  std::uint32_t append_count = 0;
  std::uint32_t at = 0;        // keep_count at the end, less where a hole is filled
  std::uint32_t revision = 0;  // how often the table has been spliced
  static constexpr auto fields(auto& self) {
    return std::tie(self.sequence, self.keep_count, self.append_count, self.at, self.revision);
  }
};

/// A sequence's pages as they now are.
struct page_use {
  std::uint32_t held = 0;
  std::uint32_t room = 0;  // tokens that find place in them
  static constexpr auto fields(auto& self) { return std::tie(self.held, self.room); }
};

// All of these are data: a release must not overtake the reservation that it undoes.

/// Asks the cache manager for room for one batch. Answered with `page_grant`. May be repeated: the same batch is granted
/// what it was granted before.
struct reserve_pages {
  static constexpr actor::message_id id{0x0201};
  static constexpr std::string_view name = "reserve_pages";

  std::uint64_t batch = 0;
  std::vector<page_want> wants;
  static constexpr auto fields(auto& self) { return std::tie(self.batch, self.wants); }
};

/// For each want in order: the sequence's table up to the end of what was added, or nothing when the pool has too few pages
/// or the table is another than the want says; and what the sequence holds.
struct page_grant {
  static constexpr actor::message_id id{0x0202};
  static constexpr std::string_view name = "page_grant";

  std::uint64_t batch = 0;
  std::vector<std::optional<std::vector<kv::piece>>> tables;
  std::uint32_t free_count = 0;
  std::vector<page_use> uses;
  /// To be done in order before the batch is computed, and also when there is nothing to compute.
  std::vector<kv::token_move> moves;
  static constexpr auto fields(auto& self) {
    return std::tie(self.batch, self.tables, self.free_count, self.uses, self.moves);
  }
};

/// Drops tokens from the middle of a sequence's table, of which it has at most keep_count; those behind move.
struct splice_pages {
  static constexpr actor::message_id id{0x0205};
  static constexpr std::string_view name = "splice_pages";

  sequence_id sequence;
  std::uint32_t keep_count = 0;
  std::uint32_t at = 0;
  std::uint32_t removed_count = 0;
  std::int32_t shift = 0;      // positions by which the tokens behind move
  std::uint32_t revision = 0;  // of the table, when this is done
  kv::splice_policy policy = kv::splice_policy::lazy;
  static constexpr auto fields(auto& self) {
    return std::tie(self.sequence, self.keep_count, self.at, self.removed_count, self.shift, self.revision, self.policy);
  }
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
