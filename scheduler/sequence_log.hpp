#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "runtime/base/ids.hpp"
#include "runtime/kv/table_splice.hpp"
#include "scheduler/coverage.hpp"
#include "scheduler/round.hpp"

namespace redline::scheduler {

/// The tokens of one sequence: which of them have KV, and up to where that KV is exact. KV kept across a splice is not
/// exact: it was computed after other tokens than those that now precede it.
class sequence_log {
 public:
  [[nodiscard]] std::span<const token> tokens() const { return tokens_; }
  [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(tokens_.size()); }

  /// True if every splice lies inside the log as the previous ones leave it, none makes it longer than count_max, and
  /// `from` is at most its end.
  [[nodiscard]] bool fits(std::span<const log_splice> splices, std::uint32_t from, std::uint32_t count_max) const;
  /// Applies splices that fit, then replaces all tokens from `from` on by `tail`. Tokens that the tail repeats keep
  /// their KV, except the last token, which is always computed for its logits. Returns the splices of the sequence's
  /// memory, in order; then the memory drops all tokens after the first `kv_count`.
  std::vector<kv::table_splice> change(std::span<const log_splice> splices, std::uint32_t from,
                                       std::span<const token> tail);

  /// These tokens of the log were computed.
  void note_computed(token_range computed);
  /// The log was computed from `first` to its end, followed by a draft of which accepted_count tokens were accepted.
  /// `appended` contains these and the one token sampled after them.
  void note_verified(std::uint32_t first, std::uint32_t accepted_count, std::span<const token> appended);
  /// All KV is lost.
  void lose_kv();
  /// Only the first `count` tokens with KV still have it.
  void keep_kv(std::uint32_t count) { kv_.keep(kv_.end_of(count)); }

  /// The next tokens to compute: up to the log's end or the next token that has KV. without_last: the last token is not
  /// needed because nothing is sampled.
  [[nodiscard]] token_range pending(bool without_last) const;
  [[nodiscard]] bool has_kv() const { return !kv_.is_empty(); }
  /// The number of tokens that have KV: the length of the page table.
  [[nodiscard]] std::uint32_t kv_count() const { return kv_.count(); }
  /// The leading tokens that have exact KV without a hole.
  [[nodiscard]] std::span<const token> computed_prefix() const;
  /// The number of leading tokens whose KV equals, or will equal, what computing the log again gives.
  [[nodiscard]] std::uint32_t exact_count() const;
  /// How often inexact KV was lost: recomputing it gives other bits.
  [[nodiscard]] std::uint32_t recomputed_count() const { return recomputed_count_; }

  /// Aborts if tokens outside the log have KV.
  void check_integrity() const;

 private:
  static constexpr std::uint32_t all_exact = 0xffffffffU;

  void apply(const log_splice& s, std::vector<kv::table_splice>& to_memory);

  std::vector<token> tokens_;
  coverage kv_;
  std::uint32_t inexact_from_ = all_exact;  // KV of tokens from here on is not exact
  std::uint32_t recomputed_count_ = 0;
};

}  // namespace redline::scheduler
