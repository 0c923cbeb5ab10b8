#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace redline::scheduler {

/// How far drafts were right lately, by place in the draft: the chance of a token to be accepted when all before it
/// were. Old drafts are forgotten exponentially, towards what `typical` says; a round without a draft forgets too, so that
/// a source that failed is tried again.
class draft_record {
 public:
  /// A round that looked at the first `verified` tokens of a draft, of which the first `accepted` were right.
  void note(std::uint32_t verified, std::uint32_t accepted);
  /// For the token at `place` (0: the draft's first), given that those before it are accepted. Where little was seen, as
  /// likely as nearer places and as `typical`, the record of all drafts, say; nullptr: no such record.
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

}  // namespace redline::scheduler
