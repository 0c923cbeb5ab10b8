#include "scheduler/draft_record.hpp"

#include <algorithm>
#include <bit>

namespace redline::scheduler {
namespace {

// A round keeps this much of what was seen before: about the last ten rounds count.
constexpr double kept_per_round = 0.9;
// Before anything was seen: as if this many tokens had been, with this share right.
constexpr double first_weight = 2;
constexpr double first_chance = 0.8;

}  // namespace

std::size_t draft_record::stretch_of(std::uint32_t place) {
  return std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(place)), stretches_count - 1);
}

void draft_record::note(std::uint32_t verified, std::uint32_t accepted) {
  for (tally& t : tallies_) {
    t.seen *= kept_per_round;
    t.right *= kept_per_round;
  }
  accepted = std::min(accepted, verified);
  for (std::uint32_t place = 0; place < accepted; ++place) {
    tally& t = tallies_[stretch_of(place)];
    t.seen += 1;
    t.right += 1;
  }
  if (accepted < verified) tallies_[stretch_of(accepted)].seen += 1;
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

}  // namespace redline::scheduler
