#include "scheduler/prefix_followers.hpp"

#include <algorithm>
#include <utility>

namespace redline::scheduler {

void prefix_followers::add(sequence_id sequence, tenant_id scope) {
  members_[sequence] = {.scope = scope, .leader = {}, .common_count = 0};
  unfinished_[scope].insert(sequence);
}

void prefix_followers::remove(sequence_id sequence) {
  const auto it = members_.find(sequence);
  if (it == members_.end()) return;
  note_prompt_done(sequence);
  if (const auto leader = it->second.leader) {
    release_if(*leader, [&](sequence_id each) { return each == sequence; });
  }
  members_.erase(it);
}

bool prefix_followers::note_prompt_done(sequence_id sequence) {
  const auto scope = unfinished_.find(members_.at(sequence).scope);
  if (scope == unfinished_.end() || scope->second.erase(sequence) == 0) return false;
  if (scope->second.empty()) unfinished_.erase(scope);
  return true;
}

std::optional<prefix_followers::choice> prefix_followers::choose_leader(sequence_id sequence,
                                                                        const run_queue& queue) const {
  const auto candidates = unfinished_.find(members_.at(sequence).scope);
  if (candidates == unfinished_.end()) return std::nullopt;
  const auto log = queue.log(sequence).tokens();
  const priority_facts& own = queue.facts_of(sequence);
  const std::uint32_t known = queue.log(sequence).kv_count();
  // The last token is always computed. A prefill leaves it out, and still needs something to compute.
  const auto useful = log.first(log.size() - std::min<std::size_t>(log.size(), own.prefill_only ? 2 : 1));
  const auto whole_pages = [&](std::size_t count) {
    return static_cast<std::uint32_t>(count / kv::page_tokens * kv::page_tokens);
  };
  std::optional<choice> best;
  std::uint32_t looked_at = 0;
  for (const sequence_id other : candidates->second) {
    const priority_facts& at = queue.facts_of(other);
    if (other == sequence || !at.open || (at.prefill_only && !own.prefill_only) || queue.waits(other)) continue;
    if (queue.has_slot(sequence) && !queue.has_slot(other)) continue;
    if (++looked_at > candidates_max) break;
    const auto theirs = queue.log(other).tokens();
    const auto same = std::mismatch(useful.begin(), useful.end(), theirs.begin(), theirs.end()).first - useful.begin();
    const std::uint32_t common = whole_pages(static_cast<std::size_t>(same));
    const auto computed = static_cast<std::uint32_t>(queue.log(other).computed_prefix().size());
    choice it{.leader = other, .common_count = whole_pages(std::min(common, computed)), .is_computed = true};
    if (it.common_count <= known) {
      const bool pays = common > known && 2 * std::uint64_t{common - known} >= log.size() - known && computed >= known;
      if (!pays) continue;
      it = {.leader = other, .common_count = common, .is_computed = false};
    }
    const auto rank = [](const choice& c) { return std::pair(c.is_computed, c.common_count); };
    if (!best || rank(*best) < rank(it)) best = it;
  }
  return best;
}

void prefix_followers::follow(sequence_id sequence, const choice& chosen) {
  member& m = members_.at(sequence);
  m.leader = chosen.leader;
  m.common_count = chosen.common_count;
  followers_[chosen.leader].members.push_back(sequence);
}

template<class Predicate>
std::vector<sequence_id> prefix_followers::release_if(sequence_id leader, Predicate is_released) {
  const auto found = followers_.find(leader);
  if (found == followers_.end()) return {};
  auto& all = found->second.members;
  const auto first =
      std::stable_partition(all.begin(), all.end(), [&](sequence_id each) { return !is_released(each); });
  std::vector<sequence_id> released(first, all.end());
  all.erase(first, all.end());
  if (all.empty()) followers_.erase(found);
  for (const sequence_id each : released) members_.at(each).leader.reset();
  return released;
}

std::vector<sequence_id> prefix_followers::release_followers(sequence_id leader) {
  return release_if(leader, [](sequence_id) { return true; });
}

std::vector<sequence_id> prefix_followers::release_served(sequence_id leader, std::uint32_t computed_count) {
  return release_if(leader, [&](sequence_id each) { return members_.at(each).common_count <= computed_count; });
}

std::vector<sequence_id> prefix_followers::release_stalled(const batch_plan& plan, const run_queue& queue) {
  std::vector<sequence_id> stalled;
  std::vector<sequence_id> displaced;
  for (auto& [leader, all] : followers_) {
    const bool took_part = std::ranges::any_of(plan.runs, [&](const planned_run& r) { return r.sequence == leader; });
    const bool has_slot = queue.has_slot(leader);
    if (took_part || !has_slot || queue.facts_of(leader).prefill_only) {
      all.stalled_passes = 0;
      if (!has_slot) displaced.push_back(leader);
    } else if (++all.stalled_passes >= stalled_passes_max) {
      stalled.push_back(leader);
    }
  }
  std::vector<sequence_id> released;
  const auto release = [&](const std::vector<sequence_id>& more) {
    released.insert(released.end(), more.begin(), more.end());
  };
  for (const sequence_id leader : stalled) release(release_followers(leader));
  for (const sequence_id leader : displaced) {
    release(release_if(leader, [&](sequence_id each) { return queue.has_slot(each); }));
  }
  return released;
}

void prefix_followers::check_integrity() const {
  std::size_t following = 0;
  for (const auto& [sequence, m] : members_) {
    if (!m.leader) continue;
    ++following;
    const auto all = followers_.find(*m.leader);
    REDLINE_ASSERT(all != followers_.end() && std::ranges::count(all->second.members, sequence) == 1,
                   "a leader lists its follower once");
    REDLINE_ASSERT(members_.contains(*m.leader), "a leader is known");
  }
  for (const auto& [leader, all] : followers_) following -= all.members.size();
  REDLINE_ASSERT(following == 0, "every listed follower follows its leader");
}

}  // namespace redline::scheduler
