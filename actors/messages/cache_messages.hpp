#pragma once

#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "runtime/actor/protocol.hpp"
#include "runtime/kv/page_table.hpp"
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
  std::uint32_t held = 0;    // by it alone
  std::uint32_t shared = 0;  // those that are kept as a known beginning, too
  std::uint32_t room = 0;    // tokens that find place in them
  static constexpr auto fields(auto& self) { return std::tie(self.held, self.shared, self.room); }
};

// All of these are data: a release must not overtake the reservation that it undoes.

/// Asks the cache manager for room for one batch. Answered with `page_grant`. May be repeated: the same batch is
/// granted what it was granted before.
struct reserve_pages {
  static constexpr actor::message_id id{0x0201};
  static constexpr std::string_view name = "reserve_pages";

  std::uint64_t batch = 0;
  std::vector<page_want> wants;
  static constexpr auto fields(auto& self) { return std::tie(self.batch, self.wants); }
};

/// For each want in order: the sequence's table up to the end of what was added, or nothing when the pool has too few
/// pages or the table is another than the want says; and what the sequence holds.
struct page_grant {
  static constexpr actor::message_id id{0x0202};
  static constexpr std::string_view name = "page_grant";

  std::uint64_t batch = 0;
  std::vector<std::optional<std::vector<kv::piece>>> tables;
  std::uint32_t shared_count = 0;  // pages of known beginnings that sequences hold
  std::vector<page_use> uses;
  /// To be done in order before the batch is computed, and also when there is nothing to compute.
  std::vector<kv::token_move> moves;
  static constexpr auto fields(auto& self) {
    return std::tie(self.batch, self.tables, self.shared_count, self.uses, self.moves);
  }
};

/// Asks for the pages of a known beginning of a new sequence's log. Answered with `prefix_adopted`.
struct adopt_prefix {
  static constexpr actor::message_id id{0x0206};
  static constexpr std::string_view name = "adopt_prefix";

  sequence_id sequence;
  std::uint64_t question = 0;  // comes back with the answer
  tenant_id tenant;            // nobody finds another tenant's pages
  std::vector<token> tokens;
  static constexpr auto fields(auto& self) { return std::tie(self.sequence, self.question, self.tenant, self.tokens); }
};

/// The first `count` tokens lie in pages that the sequence now holds.
struct prefix_adopted {
  static constexpr actor::message_id id{0x0207};
  static constexpr std::string_view name = "prefix_adopted";

  sequence_id sequence;
  std::uint64_t question = 0;
  std::uint32_t count = 0;
  page_use use;
  std::uint32_t shared_count = 0;  // as in page_grant
  static constexpr auto fields(auto& self) {
    return std::tie(self.sequence, self.question, self.count, self.use, self.shared_count);
  }
};

/// The first tokens of a sequence's log, which are computed: other sequences of the tenant that begin alike may have
/// its pages.
struct offer_prefix {
  static constexpr actor::message_id id{0x0208};
  static constexpr std::string_view name = "offer_prefix";

  sequence_id sequence;
  tenant_id tenant;
  std::vector<token> tokens;
  static constexpr auto fields(auto& self) { return std::tie(self.sequence, self.tenant, self.tokens); }
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
    return std::tie(self.sequence, self.keep_count, self.at, self.removed_count, self.shift, self.revision,
                    self.policy);
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
