#include "runtime/draft/acceptance_record.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace redline::draft {
namespace {

// A draft keeps this much of what was seen of its sources and grades: of places that it did not reach too, because
// text that was copied for long may be new by now, and the other way round.
constexpr double kept_per_draft = 0.95;
// And of that, this much at places that it reached: there the last seven drafts count, about.
constexpr double kept_where_reached = 0.9;
// What is thought at first counts as so many tokens.
constexpr double first_weight = 1.5;
// By grade.
constexpr double first_chances[grades_count] = {0.33, 0.5, 0.75, 0.86, 0.92, 0.95, 0.96};

}  // namespace

std::size_t acceptance_record::stretch_of(std::uint32_t place) {
  return std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(place)), stretches_count - 1);
}

double acceptance_record::tally::share(double expected) const {
  return (right + first_weight * expected) / (seen + first_weight);
}

void acceptance_record::learn(std::span<const graded_run> runs, std::uint32_t right, bool is_wrong) {
  const std::uint32_t known = right + (is_wrong ? 1 : 0);
  if (known == 0) return;
  // Of each record the places that were aged, as bits; the last one: all of them were, once.
  std::array<std::array<std::uint16_t, grades_count>, static_cast<std::size_t>(source::last_)> aged{};
  const auto age_once = [&](const graded_run& run, std::size_t bit, std::span<tally> some, double kept) {
    std::uint16_t& bits = aged[static_cast<std::size_t>(run.from)][run.grade];
    if ((bits >> bit & 1) != 0) return;
    bits = static_cast<std::uint16_t>(bits | 1U << bit);
    for (tally& t : some) {
      t.seen *= kept;
      t.right *= kept;
    }
  };
  std::uint32_t place = 0;
  for (const graded_run& run : runs) {
    tallies& record = records_[static_cast<std::size_t>(run.from)][run.grade];
    age_once(run, stretches_count, record, kept_per_draft);
    for (std::uint32_t i = 0; i < run.count && place < known; ++i, ++place) {
      const std::size_t stretch = stretch_of(place);
      age_once(run, stretch, {&record[stretch], 1}, kept_where_reached);
      record[stretch].seen += 1;
      record[stretch].right += place < right ? 1 : 0;
    }
  }
}

double acceptance_record::chance(source from, std::uint8_t grade, std::uint32_t place,
                                 const acceptance_record* prior) const {
  const auto& own = records_[static_cast<std::size_t>(from)][grade];
  const auto* usual = prior != nullptr ? &prior->records_[static_cast<std::size_t>(from)][grade] : nullptr;
  double expected = first_chances[grade];
  double chance = expected;
  for (std::size_t i = 0; i <= stretch_of(place); ++i) {
    if (usual != nullptr) {
      expected = (*usual)[i].share(expected);
      chance = i == 0 ? expected : (chance + expected) / 2;
    }
    chance = own[i].share(chance);
  }
  return chance;
}

std::vector<draft_part> acceptance_record::parts(std::span<const graded_run> runs,
                                                 const acceptance_record* prior) const {
  std::vector<draft_part> out;
  std::uint32_t place = 0;
  for (const graded_run& run : runs) {
    for (std::uint32_t left = run.count; left > 0;) {
      const std::uint32_t stretch_end = place < 64 ? std::bit_ceil(place + 1) : place + left;
      const std::uint32_t count = std::min(left, stretch_end - place);
      const auto e4 =
          static_cast<std::uint16_t>(std::lround(chance(run.from, run.grade, place, prior) * draft_part::certain));
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
