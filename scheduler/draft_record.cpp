#include "scheduler/draft_record.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace redline::scheduler {
namespace {

// A round keeps this much of what was seen before: about the last ten rounds count.
constexpr double kept_per_round = 0.9;
// And this much of places that the round's draft did not reach: it says nothing about them.
constexpr double kept_unseen = 0.95;
// Before anything was seen: as if this many tokens had been, with this share right.
constexpr double first_weight = 2;
constexpr double first_chance = 0.8;

}  // namespace

std::size_t draft_record::stretch_of(std::uint32_t place) {
  return std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(place)), stretches_count - 1);
}

void draft_record::note(std::uint32_t verified, std::uint32_t accepted) {
  accepted = std::min(accepted, verified);
  forget(verified, accepted);
  count(0, verified, accepted);
}

void draft_record::forget(std::uint32_t verified, std::uint32_t accepted) {
  const std::size_t reached = verified > 0 ? stretch_of(std::min(accepted, verified - 1)) : 0;
  for (std::size_t i = 0; i < stretches_count; ++i) {
    const double kept = i <= reached ? kept_per_round : kept_unseen;
    tallies_[i].seen *= kept;
    tallies_[i].right *= kept;
  }
}

void draft_record::count(std::uint32_t begin, std::uint32_t end, std::uint32_t accepted) {
  for (std::uint32_t place = begin; place < std::min(accepted, end); ++place) {
    tally& t = tallies_[stretch_of(place)];
    t.seen += 1;
    t.right += 1;
  }
  if (begin <= accepted && accepted < end) tallies_[stretch_of(accepted)].seen += 1;
}

double draft_record::chance(std::uint32_t place, const draft_record* typical) const {
  const std::size_t wanted = stretch_of(place);
  double chance = first_chance;
  double usual = first_chance;
  for (std::size_t i = 0; i <= wanted; ++i) {
    if (typical != nullptr) {
      usual = typical->tallies_[i].with(usual);
      chance = i == 0 ? usual : (chance + usual) / 2;
    }
    chance = tallies_[i].with(chance);
  }
  return chance;
}

double draft_record::tally::with(double expected) const {
  return (right + first_weight * expected) / (seen + first_weight);
}

void source_records::note(std::span<const draft_stretch> stretches, std::uint32_t verified, std::uint32_t accepted) {
  accepted = std::min(accepted, verified);
  std::array<bool, sources_max> forgot{};
  std::uint32_t begin = 0;
  const auto note_one = [&](std::size_t source, std::uint32_t end) {
    // What the round did not come to forgets its first places only.
    if (!std::exchange(forgot[source], true)) records_[source].forget(begin < end ? end : 0, accepted);
    records_[source].count(begin, end, accepted);
    begin = end;
  };
  for (const draft_stretch& s : stretches) {
    note_one(std::min<std::size_t>(s.source, sources_max - 1), begin + std::min(s.count, verified - begin));
  }
  if (begin < verified || stretches.empty()) note_one(0, verified);
}

double source_records::chance(std::span<const draft_stretch> stretches, std::uint32_t place,
                              const source_records* typical) const {
  std::size_t source = 0;
  std::uint64_t end = 0;
  for (const draft_stretch& s : stretches) {
    end += s.count;
    if (place >= end) continue;
    source = std::min<std::size_t>(s.source, sources_max - 1);
    break;
  }
  return records_[source].chance(place, typical != nullptr ? &typical->records_[source] : nullptr);
}

}  // namespace redline::scheduler
