#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "scheduler/run_queue.hpp"

namespace redline::scheduler {

/// Decides which new sequences wait for another one, their leader, to compute a shared prompt prefix, such as n answers
/// to one prompt or many users' questions about one file at once. Waiting saves work for all. A follower waits only for
/// the common part, and only while the leader advances.
class prefix_followers {
 public:
  /// The first common_count tokens of the leader's prompt are useful: whole pages, more than the sequence has.
  struct choice {
    sequence_id leader;
    std::uint32_t common_count = 0;
    bool is_computed = false;  // these tokens already have KV, so there is nothing to wait for
    bool operator==(const choice&) const = default;
  };

  /// Adds a sequence whose prompt is going to be computed. Only sequences of one scope may share a prefix.
  void add(sequence_id sequence, tenant_id scope);
  /// Removes a sequence, which stops following. The caller has already released its own followers.
  void remove(sequence_id sequence);

  /// Chooses among sequences of its scope whose prompts are being computed and that do not wait: the one that has
  /// computed the most of the common prefix; otherwise the one with the longest common prefix, if that covers at least
  /// half of what the sequence lacks and the leader has computed as much as the sequence. Sequences with a closed round
  /// never lead, nor those without a slot if this one has a slot, nor prefills for a round that a client waits for,
  /// because their turn comes last. Looks at candidates_max sequences, to bound its time.
  [[nodiscard]] std::optional<choice> choose_leader(sequence_id sequence, const run_queue& queue) const;
  void follow(sequence_id sequence, const choice& chosen);
  /// The sequence's prompt is computed, so it no longer leads. Returns false if that was already noted.
  bool note_prompt_done(sequence_id sequence);
  /// The leader has computed its prompt, or gives up. Returns its followers, which no longer follow a leader.
  std::vector<sequence_id> release_followers(sequence_id leader);
  /// Releases only the followers whose common part the leader has computed.
  std::vector<sequence_id> release_served(sequence_id leader, std::uint32_t computed_count);
  /// After a pass: releases followers of leaders that lost their slot or missed the last stalled_passes_max passes.
  std::vector<sequence_id> release_stalled(const batch_plan& plan, const run_queue& queue);

  /// Aborts if leaders and followers are inconsistent.
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
    std::uint32_t stalled_passes = 0;  // in a row without the leader
  };

  template<class Predicate>
  std::vector<sequence_id> release_if(sequence_id leader, Predicate is_released);

  std::unordered_map<sequence_id, member> members_;
  std::map<tenant_id, std::set<sequence_id>> unfinished_;  // prompts that are not computed yet, by scope
  std::map<sequence_id, group> followers_;                 // by leader
};

}  // namespace redline::scheduler
