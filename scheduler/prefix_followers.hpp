#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "scheduler/run_queue.hpp"

namespace redline::scheduler {

/// Which new sequences wait for another one, their leader, to compute the prompt prefix that both share: n answers to
/// one prompt, or many users' questions about one file at once. Waiting is less work for all. A follower waits for the
/// common part only, and only while the leader gets on with it.
class prefix_followers {
 public:
  /// Of the leader's prompt, the first common_count tokens are of use: whole pages, more than the sequence has.
  struct choice {
    sequence_id leader;
    std::uint32_t common_count = 0;
    bool is_computed = false;  // they have KV already: nothing is to be waited for
    bool operator==(const choice&) const = default;
  };

  /// A sequence whose prompt is going to be computed. Only sequences of one scope may share a prefix.
  void add(sequence_id sequence, tenant_id scope);
  /// A follower stops following. The caller has had the followers of a leader released.
  void remove(sequence_id sequence);

  /// Of the sequences of its scope whose prompts are being computed and that wait for none: the one that has computed
  /// most of what both begin with; else the one that has most in common with it, if that is at least half of what the
  /// sequence lacks and does not begin after that. Not one whose round is closed, nor one without a place where the
  /// sequence has one, nor a prefill for a round that a client waits for: its turn comes last.
  /// Looks at candidates_max of them, so that its time is bounded.
  [[nodiscard]] std::optional<choice> choose_leader(sequence_id sequence, const run_queue& queue) const;
  void follow(sequence_id sequence, const choice& chosen);
  /// The leader's prompt is computed, so that it leads no further. False if that was known.
  bool note_prompt_done(sequence_id sequence);
  /// The leader has computed its prompt, or gives up: its followers, which from now on follow none.
  std::vector<sequence_id> release_followers(sequence_id leader);
  /// The same of those whose common part the leader has computed.
  std::vector<sequence_id> release_served(sequence_id leader, std::uint32_t computed_count);
  /// After a pass: the same of those whose leader had no part in the last stalled_passes_max ones, or lost its place.
  std::vector<sequence_id> release_stalled(const batch_plan& plan, const run_queue& queue);

  /// Aborts when leaders and followers do not know each other.
  void check_integrity() const;

 private:
  static constexpr std::uint32_t stalled_passes_max = 3;
  static constexpr std::uint32_t candidates_max = 16;

  struct member {
    tenant_id scope;
    std::optional<sequence_id> leader;
    std::uint32_t common_count = 0;  // with the leader
  };
  struct group {
    std::vector<sequence_id> members;  // in order of arrival
    std::uint32_t stalled_passes = 0;  // of the leader
  };

  template<class Predicate>
  std::vector<sequence_id> release_if(sequence_id leader, Predicate is_released);

  std::unordered_map<sequence_id, member> members_;
  std::map<tenant_id, std::set<sequence_id>> unfinished_;  // prompts not computed yet, by scope
  std::map<sequence_id, group> followers_;                 // by leader
};

}  // namespace redline::scheduler
