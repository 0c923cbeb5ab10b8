#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/draft/book_constants.hpp"
#include "runtime/draft/source.hpp"

namespace redline::draft {

/// The chance that a draft's tokens are accepted, by source, grade, whether another source disagreed, and position in
/// the draft. This is the only such estimate: drafts carry their chances to the scheduler, which decides how much of
/// them is verified. It is learned from the actual answer, so also from drafts that were cut or not used at all.
class acceptance_record {
 public:
  explicit acceptance_record(const book_constants& constants = {}) : constants_(constants) {}

  /// Learns from a draft of these segments that was compared with the answer. Its first `right` tokens are right; if
  /// `is_wrong`, the next one is not, otherwise nothing is known about it.
  void learn(std::span<const graded_segment> runs, std::uint32_t right, bool is_wrong);

  /// The chance of a segment's token at position `place` of its draft, from 0, if all before it are accepted. `prior`,
  /// the record of the tenant's answers, counts while there is little data; may be null.
  [[nodiscard]] double chance(const graded_segment& run, std::uint32_t place, const acceptance_record* prior) const;
  /// The draft's parts with their chances.
  [[nodiscard]] std::vector<draft_part> parts(std::span<const graded_segment> runs,
                                              const acceptance_record* prior) const;

 private:
  // Positions are grouped as 0, 1, 2-3, 4-7, ..., 64 and beyond.
  static constexpr std::size_t stretches_count = 8;
  [[nodiscard]] static std::size_t position_group_of(std::uint32_t place);

  struct tally {
    double seen = 0;
    double right = 0;
  };
  using tallies = std::array<tally, stretches_count>;
  static constexpr std::size_t records_count = static_cast<std::size_t>(source::last_) * grades_count * 2;
  [[nodiscard]] static std::size_t record_of(const graded_segment& run) {
    return (static_cast<std::size_t>(run.from) * grades_count + run.grade) * 2 + (run.contested ? 1 : 0);
  }

  book_constants constants_;
  std::array<tallies, records_count> records_{};
};

}  // namespace redline::draft
