#pragma once

#include <string_view>
#include <tuple>
#include <vector>

#include "actors/messages/target_messages.hpp"
#include "runtime/kv/splice_policy.hpp"

// From the scheduler to the cache manager, and what comes back. All of it is data, so it arrives in order. Each message
// to the cache manager carries the scheduler's epoch: with a new one all page tables, known prefixes and pending moves
// of earlier epochs are dropped, because the storage or the scheduler's memory of it is gone.

namespace redline::actors {

/// Drops tokens from the middle of a page table; those after them move.
struct table_splice {
  std::uint32_t keep_count = 0;  // before that, all tokens after the first keep_count are dropped
  std::uint32_t at = 0;
  std::uint32_t removed_count = 0;
  std::int32_t shift = 0;  // positions by which the tokens after the splice move
  kv::splice_policy policy = kv::splice_policy::lazy;
  bool operator==(const table_splice&) const = default;
  static constexpr auto fields(auto& self) {
    return std::tie(self.keep_count, self.at, self.removed_count, self.shift, self.policy);
  }
};

/// What happened to a sequence's page table since the last batch that named it: splices in order, then all tokens after
/// the first `keep_count` are dropped. The table has that many tokens then, or else one of the two lost its memory.
struct table_change {
  sequence_id sequence;
  std::vector<table_splice> splices;
  std::uint32_t keep_count = 0;
  bool operator==(const table_change&) const = default;
  static constexpr auto fields(auto& self) { return std::tie(self.sequence, self.splices, self.keep_count); }
};

/// Gives the runs of a batch their pages and passes it on to the target model as `forward_batch`. A run's first
/// position is also the index in its sequence's table where its tokens go. A batch that is not passed on is answered
/// with `batch_held`, one without runs always. May be sent again: a batch is passed on once.
struct place_batch {
  static constexpr actor::message_id id{0x020c};  // 0x0201 was an older form
  static constexpr std::string_view name = "place_batch";

  std::uint64_t epoch = 0;
  std::uint64_t batch = 0;
  std::vector<table_change> changes;  // of each run's sequence, and of others; all of them before any run
  std::vector<batch_run> runs;        // without tables
  static constexpr auto fields(auto& self) { return std::tie(self.epoch, self.batch, self.changes, self.runs); }
};

/// The batch was not passed on: it has no runs, or the pages are too few for them all, or a sequence wants to go on
/// from a place so early that its windows there are no longer kept. Its changes have been made.
struct batch_held {
  static constexpr actor::message_id id{0x020d};  // 0x0202 was an older form
  static constexpr std::string_view name = "batch_held";

  std::uint64_t batch = 0;
  bool tables_lost = false;  // the cache manager has other tables than the changes say: all KV must be computed again
  page_report pages;
  std::vector<sequence_id> windows_lost;  // of the runs' sequences: window pages that they would read are gone
  static constexpr auto fields(auto& self) {
    return std::tie(self.batch, self.tables_lost, self.pages, self.windows_lost);
  }
};

/// The batch was passed on and did not reach the target model.
struct batch_lost {
  static constexpr actor::message_id id{0x0209};
  static constexpr std::string_view name = "batch_lost";

  std::uint64_t batch = 0;
  failure why;
  static constexpr auto fields(auto& self) { return std::tie(self.batch, self.why); }
};

/// Gives a sequence that has no KV the pages of the longest known prefix of its log. Answered with `prefix_adopted`.
struct adopt_prefix {
  static constexpr actor::message_id id{0x0206};
  static constexpr std::string_view name = "adopt_prefix";

  std::uint64_t epoch = 0;
  sequence_id sequence;
  std::uint64_t question = 0;  // comes back with the answer
  tenant_id tenant;            // a prefix is found only by its own tenant
  std::vector<token> tokens;
  static constexpr auto fields(auto& self) {
    return std::tie(self.epoch, self.sequence, self.question, self.tenant, self.tokens);
  }
};

/// The first `count` tokens lie in pages that the sequence now holds.
struct prefix_adopted {
  static constexpr actor::message_id id{0x020e};  // 0x0207 was an older form
  static constexpr std::string_view name = "prefix_adopted";

  sequence_id sequence;
  std::uint64_t question = 0;
  std::uint32_t count = 0;
  std::uint32_t free_count = 0;                               // as in page_report
  std::uint32_t window_free_count = page_report::no_windows;  // likewise
  static constexpr auto fields(auto& self) {
    return std::tie(self.sequence, self.question, self.count, self.free_count, self.window_free_count);
  }
};

/// The first tokens of a sequence's log, which are computed: other sequences of the tenant whose logs begin with them
/// may have its pages.
struct offer_prefix {
  static constexpr actor::message_id id{0x0208};
  static constexpr std::string_view name = "offer_prefix";

  std::uint64_t epoch = 0;
  sequence_id sequence;
  tenant_id tenant;
  std::vector<token> tokens;
  static constexpr auto fields(auto& self) { return std::tie(self.epoch, self.sequence, self.tenant, self.tokens); }
};

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

/// Gives all pages of a sequence back.
struct release_pages {
  static constexpr actor::message_id id{0x0203};
  static constexpr std::string_view name = "release_pages";

  std::uint64_t epoch = 0;
  sequence_id sequence;
  static constexpr auto fields(auto& self) { return std::tie(self.epoch, self.sequence); }
};

}  // namespace redline::actors
