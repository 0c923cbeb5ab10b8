#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace redline::scheduler {

/// Consecutive tokens of a draft with one source, or one that is as sure, which whoever drafts gives a number of its
/// own.
struct draft_stretch {
  std::uint8_t source = 0;
  std::uint32_t count = 0;
};

/// How far drafts were right lately, by place in the draft: the chance of a token to be accepted when all before it
/// were. Old drafts are forgotten exponentially, towards what `typical` says; a round without a draft forgets too, so
/// that a source that failed is tried again. Places that a round did not reach are forgotten more slowly: where the
/// answer is new drafts end early, and what was seen behind must not be lost by then.
class draft_record {
 public:
  /// A round that looked at the first `verified` tokens of a draft, of which the first `accepted` were right.
  void note(std::uint32_t verified, std::uint32_t accepted);
  /// The two halves of that, for drafts with several sources: older rounds count less, and of this one the places from
  /// `begin` up to `end`.
  void forget(std::uint32_t verified, std::uint32_t accepted);
  void count(std::uint32_t begin, std::uint32_t end, std::uint32_t accepted);
  /// For the token at `place` (0: the draft's first), given that those before it are accepted. Where little was seen,
  /// as likely as nearer places and as `typical`, the record of all drafts, say; nullptr: no such record.
  [[nodiscard]] double chance(std::uint32_t place, const draft_record* typical) const;

 private:
  // Places 0, 1, 2-3, 4-7, ..., 64 and beyond.
  static constexpr std::size_t stretches_count = 8;
  [[nodiscard]] static std::size_t stretch_of(std::uint32_t place);

  struct tally {
    double seen = 0;
    double right = 0;
    /// The share that is right, when `expected` was thought before.
    [[nodiscard]] double with(double expected) const;
  };
  std::array<tally, stretches_count> tallies_{};
};

/// The same for each source by itself: a copy of the old file and a small model's guess fail at different places. What
/// a draft had nothing of keeps its record.
class source_records {
 public:
  static constexpr std::size_t sources_max = 32;  // higher numbers share the last record

  /// What the stretches do not cover counts as of source 0.
  void note(std::span<const draft_stretch> stretches, std::uint32_t verified, std::uint32_t accepted);
  [[nodiscard]] double chance(std::span<const draft_stretch> stretches, std::uint32_t place,
                              const source_records* typical) const;

 private:
  std::array<draft_record, sources_max> records_;
};

}  // namespace redline::scheduler
