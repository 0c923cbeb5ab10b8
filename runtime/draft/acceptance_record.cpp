#include "runtime/draft/acceptance_record.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace redline::draft {
namespace {

/// The first estimate of a token's chance after this many matching tokens. For the draft model's own tokens the grade
/// encodes its confidence, and the same numbers fit.
double first_chance(std::uint8_t grade) {
  constexpr double matched[grades_count] = {0, 1, 2, 3, 4, 6, 9};
  const double squared = matched[grade] * matched[grade];
  return (squared + 1) / (squared + 3);
}

}  // namespace

std::size_t acceptance_record::position_group_of(std::uint32_t place) {
  return std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(place)), stretches_count - 1);
}

void acceptance_record::learn(std::span<const graded_segment> runs, std::uint32_t right, bool is_wrong) {
  const std::uint32_t known = right + (is_wrong ? 1 : 0);
  if (known == 0) return;
  // The positions of each record that this draft has aged, as bits; the last bit means that all were aged once.
  std::array<std::uint16_t, records_count> aged{};
  const auto age_once = [&](std::size_t record, std::size_t bit, std::span<tally> some, double forgotten) {
    if ((aged[record] >> bit & 1) != 0) return;
    aged[record] = static_cast<std::uint16_t>(aged[record] | 1U << bit);
    for (tally& t : some) {
      t.seen *= 1 - forgotten;
      t.right *= 1 - forgotten;
    }
  };
  // Positions that the draft did not reach are forgotten at half the pace. If a low chance stops verification, nothing
  // would otherwise ever be learned again.
  const double pace = 1 / constants_.remembered_drafts;
  std::uint32_t place = 0;
  for (const graded_segment& run : runs) {
    const std::size_t record = record_of(run);
    age_once(record, stretches_count, records_[record], pace / 2);
    for (std::uint32_t i = 0; i < run.count && place < known; ++i, ++place) {
      tally& t = records_[record][position_group_of(place)];
      age_once(record, position_group_of(place), {&t, 1}, pace);
      t.seen += 1;
      t.right += place < right ? 1 : 0;
    }
  }
}

double acceptance_record::chance(const graded_segment& run, std::uint32_t place, const acceptance_record* prior) const {
  const auto share = [&](const tally& t, double expected) {
    return (t.right + constants_.first_weight * expected) / (t.seen + constants_.first_weight);
  };
  const auto& own = records_[record_of(run)];
  const auto* usual = prior != nullptr ? &prior->records_[record_of(run)] : nullptr;
  double expected = first_chance(run.grade);
  double chance = expected;
  for (std::size_t i = 0; i <= position_group_of(place); ++i) {
    if (usual != nullptr) {
      expected = share((*usual)[i], expected);
      chance = i == 0 ? expected : (chance + expected) / 2;
    }
    chance = share(own[i], chance);
  }
  return chance;
}

std::vector<draft_part> acceptance_record::parts(std::span<const graded_segment> runs,
                                                 const acceptance_record* prior) const {
  std::vector<draft_part> out;
  std::uint32_t place = 0;
  for (const graded_segment& run : runs) {
    for (std::uint32_t left = run.count; left > 0;) {
      const std::uint32_t stretch_end = place < 64 ? std::bit_ceil(place + 1) : place + left;
      const std::uint32_t count = std::min(left, stretch_end - place);
      const auto e4 = static_cast<std::uint16_t>(std::lround(chance(run, place, prior) * draft_part::certain));
      if (!out.empty() && out.back().from == run.from && out.back().grade == run.grade && out.back().chance_e4 == e4) {
        out.back().count += count;
      } else {
        out.push_back({run.from, count, run.grade, e4});
      }
      left -= count;
      place += count;
    }
  }
  return out;
}

}  // namespace redline::draft
