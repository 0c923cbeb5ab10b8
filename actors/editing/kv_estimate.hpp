#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "actors/messages/edit_messages.hpp"
#include "actors/messages/verify_messages.hpp"

namespace redline::actors {

/// The step from one log to the next.
struct log_step {
  bool is_new = false;                         // the log has changed
  std::vector<scheduler::log_splice> splices;  // to send to the cache manager before the log itself
};

/// An edit session's estimate of its sequence's KV: the log that the cache manager last received, and from which token
/// on the KV is no longer exact. The cache manager knows better, since KV may have been lost and computed again, so
/// what counts as stale here is an upper bound.
class kv_estimate {
 public:
  explicit kv_estimate(kv::splice_policy policy) : policy_(policy) {}

  /// The log becomes this prompt. behind: the text that follows it, which may join the log later. There are no splices
  /// under `exact`, where everything after the first change is computed again, nor when the first token changes.
  [[nodiscard]] log_step follow(std::vector<token> prompt, const std::vector<token>& behind = {});
  /// The prompt is expected next, but a later position may be asked for: the log becomes the prompt and those tokens
  /// after it that have KV.
  [[nodiscard]] log_step expect(std::vector<token> prompt, const std::vector<token>& behind);

  /// Takes the cache manager's count of exact tokens of the present log.
  void note_exact(std::uint32_t count);
  /// The KV is (or will be) computed from the present log.
  void become_exact() { note_exact(log_count_); }

  [[nodiscard]] kv_state state() const;
  [[nodiscard]] bool is_exact() const { return exact_count_ == log_count_; }
  [[nodiscard]] std::span<const token> log() const { return std::span(text_).first(log_count_); }

 private:
  log_step go_to(std::vector<token> text, std::size_t count_min, std::size_t count_max);

  kv::splice_policy policy_;
  std::vector<token> text_;  // the log, and what follows it
  std::uint32_t log_count_ = 0;
  std::uint32_t exact_count_ = 0;  // tokens [0, exact_count_) are exact, the others stale
};

}  // namespace redline::actors
