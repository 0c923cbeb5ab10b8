#pragma once

#include <cstdint>
#include <vector>

#include "actors/messages/edit_messages.hpp"
#include "actors/messages/verify_messages.hpp"

namespace redline::actors {

/// An edit session's estimate of its sequence's KV: the log that the scheduler was last told, and from where on the KV
/// is no longer what computing that log anew would give. The scheduler knows better, since KV may have been lost and
/// computed again; so what counts as stale here is an upper bound.
class kv_estimate {
 public:
  explicit kv_estimate(kv::splice_policy policy) : policy_(policy) {}

  /// Goes on to another prompt. Returns the splices to send to the scheduler before the prompt itself: none under
  /// `exact`, where everything after the first change is computed again, and none when the first token changes.
  [[nodiscard]] std::vector<log_splice> follow(std::vector<token> prompt);

  /// What the scheduler says of the log as it stands.
  void note_exact(std::uint32_t count);
  /// The KV is (or will be) computed from the log as it stands.
  void become_exact() { note_exact(static_cast<std::uint32_t>(log_.size())); }

  [[nodiscard]] kv_state state() const;
  [[nodiscard]] bool is_exact() const { return exact_count_ == log_.size(); }
  [[nodiscard]] const std::vector<token>& log() const { return log_; }

 private:
  kv::splice_policy policy_;
  std::vector<token> log_;
  std::uint32_t exact_count_ = 0;  // tokens [0, exact_count_) are exact, the others stale
};

}  // namespace redline::actors
