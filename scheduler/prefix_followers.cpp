#include "scheduler/prefix_followers.hpp"

#include <algorithm>
#include <utility>

namespace redline::scheduler {

void prefix_followers::add(sequence_id sequence, tenant_id scope) {
  members_[sequence] = {.scope = scope, .leader = {}};
  unfinished_[scope].insert(sequence);
}

void prefix_followers::remove(sequence_id sequence) {
  const auto it = members_.find(sequence);
  if (it == members_.end()) return;
  note_prompt_done(sequence);
  if (const auto leader = it->second.leader) {
    auto& all = followers_.at(*leader);
    std::erase(all, sequence);
    if (all.empty()) followers_.erase(*leader);
  }
  members_.erase(it);
}

bool prefix_followers::note_prompt_done(sequence_id sequence) {
  const auto scope = unfinished_.find(members_.at(sequence).scope);
  if (scope == unfinished_.end() || scope->second.erase(sequence) == 0) return false;
  if (scope->second.empty()) unfinished_.erase(scope);
  return true;
}

std::optional<sequence_id> prefix_followers::choose_leader(sequence_id sequence, const run_queue& queue,
                                                           std::uint32_t shared_min) const {
  const auto candidates = unfinished_.find(members_.at(sequence).scope);
  if (candidates == unfinished_.end()) return std::nullopt;
  const auto log = queue.log(sequence).tokens();
  const bool prefill_only = queue.standing_of(sequence).prefill_only;
  std::size_t longest = std::max<std::size_t>(log.size() / 2, shared_min) - 1;
  std::optional<sequence_id> leader;
  for (const sequence_id other : candidates->second) {
    const standing& at = queue.standing_of(other);
    if (other == sequence || !at.open || (at.prefill_only && !prefill_only) || members_.at(other).leader) continue;
    const auto theirs = queue.log(other).tokens();
    const auto same = std::mismatch(log.begin(), log.end(), theirs.begin(), theirs.end()).first - log.begin();
    if (static_cast<std::size_t>(same) <= longest) continue;
    longest = static_cast<std::size_t>(same);
    leader = other;
  }
  return leader;
}

void prefix_followers::follow(sequence_id sequence, sequence_id leader) {
  members_.at(sequence).leader = leader;
  followers_[leader].push_back(sequence);
}

std::vector<sequence_id> prefix_followers::release_followers(sequence_id leader) {
  const auto found = followers_.extract(leader);
  if (found.empty()) return {};
  for (const sequence_id each : found.mapped()) members_.at(each).leader.reset();
  return found.mapped();
}

void prefix_followers::check_integrity() const {
  std::size_t following = 0;
  for (const auto& [sequence, m] : members_) {
    if (!m.leader) continue;
    ++following;
    const auto all = followers_.find(*m.leader);
    REDLINE_ASSERT(all != followers_.end() && std::count(all->second.begin(), all->second.end(), sequence) == 1,
                   "a leader does not know its follower");
    REDLINE_ASSERT(members_.contains(*m.leader), "a leader is gone");
  }
  for (const auto& [leader, all] : followers_) following -= all.size();
  REDLINE_ASSERT(following == 0, "a follower is gone");
}

}  // namespace redline::scheduler
