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
/// one prompt, or many users' questions about one file at once. Waiting is less work for all.
class prefix_followers {
 public:
  /// A sequence whose prompt is going to be computed. Only sequences of one scope may share a prefix.
  void add(sequence_id sequence, tenant_id scope);
  /// A follower stops following. The caller has had the followers of a leader released.
  void remove(sequence_id sequence);

  /// Of the sequences of its scope whose prompts are being computed and that follow none, the one with the longest
  /// common prefix: at least half of the sequence's log, and shared_min tokens. Not one whose round is closed, nor a
  /// prefill for a round that a client waits for: its turn comes last.
  [[nodiscard]] std::optional<sequence_id> choose_leader(sequence_id sequence, const run_queue& queue,
                                                         std::uint32_t shared_min) const;
  void follow(sequence_id sequence, sequence_id leader);
  /// The leader's prompt is computed, so that it leads no further. False if that was known.
  bool note_prompt_done(sequence_id sequence);
  /// The leader has computed its prompt, or gives up: its followers, which from now on follow none.
  std::vector<sequence_id> release_followers(sequence_id leader);

  /// Aborts when leaders and followers do not know each other.
  void check_integrity() const;

 private:
  struct member {
    tenant_id scope;
    std::optional<sequence_id> leader;
  };

  std::unordered_map<sequence_id, member> members_;
  std::map<tenant_id, std::set<sequence_id>> unfinished_;                // prompts not computed yet, by scope
  std::unordered_map<sequence_id, std::vector<sequence_id>> followers_;  // by leader, in order of arrival
};

}  // namespace redline::scheduler
