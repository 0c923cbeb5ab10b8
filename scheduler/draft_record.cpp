#include "scheduler/draft_record.hpp"

#include <algorithm>
#include <bit>

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

void draft_record::note(std::uint32_t verified, std::uint32_t accepted, std::uint32_t begin) {
  accepted = std::min(accepted, verified);
  const std::size_t reached = verified > 0 ? stretch_of(std::min(accepted, verified - 1)) : 0;
  for (std::size_t i = 0; i < stretches_count; ++i) {
    const double kept = i <= reached ? kept_per_round : kept_unseen;
    tallies_[i].seen *= kept;
    tallies_[i].right *= kept;
  }
  for (std::uint32_t place = begin; place < accepted; ++place) {
    tally& t = tallies_[stretch_of(place)];
    t.seen += 1;
    t.right += 1;
  }
  if (begin <= accepted && accepted < verified) tallies_[stretch_of(accepted)].seen += 1;
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
  for (std::size_t source = 0; source < sources_max; ++source) {
    std::uint32_t begin = 0;
    std::uint32_t first = verified;  // nothing of this source
    std::uint32_t end = verified;
    for (const draft_stretch& s : stretches) {
      const std::uint32_t behind = begin + std::min(s.count, verified - begin);
      if (std::min<std::size_t>(s.source, sources_max - 1) == source && behind > begin) {
        if (first == verified) first = begin;
        end = behind;
      }
      begin = behind;
    }
    if (source == 0 && begin < verified) {
      if (first == verified) first = begin;
      end = verified;
    }
    records_[source].note(first < verified ? end : 0, std::min(accepted, end), first);
  }
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
