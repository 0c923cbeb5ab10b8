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

/// The tokens of one sequence: which of them have KV, and up to where that KV is exact. KV that was kept across a
/// splice is not: it was computed after other tokens than those that now stand before it.
class sequence_log {
 public:
  [[nodiscard]] std::span<const token> tokens() const { return tokens_; }
  [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(tokens_.size()); }

  /// True if every splice lies inside the log as those before it leave it, none makes it longer than count_max, and
  /// `from` is at most its end.
  [[nodiscard]] bool fits(std::span<const log_splice> splices, std::uint32_t from, std::uint32_t count_max) const;
  /// Applies splices that fit, then replaces all tokens from `from` on by `tail`. Tokens that the tail repeats keep
  /// their KV. The last token never does: it is computed in any case, for its logits. Returns the splices of its
  /// memory, in order; then the memory drops all tokens after the first `kv_count`.
  std::vector<kv::table_splice> change(std::span<const log_splice> splices, std::uint32_t from,
                                       std::span<const token> tail);

  /// Tokens of the log were computed.
  void note_computed(token_range computed);
  /// The log was computed from `first` to its end, with a draft after it of which accepted_count tokens were right:
  /// `appended` is these and the one token sampled after them.
  void note_verified(std::uint32_t first, std::uint32_t accepted_count, std::span<const token> appended);
  /// All KV is lost.
  void lose_kv();
  /// No token after the first `count` that have KV has it any longer.
  void keep_kv(std::uint32_t count) { kv_.keep(kv_.end_of(count)); }

  /// The next tokens to compute: up to the log's end or the next token that has KV. without_last: the last token is not
  /// wanted, as nothing is sampled.
  [[nodiscard]] token_range pending(bool without_last) const;
  [[nodiscard]] bool has_kv() const { return !kv_.is_empty(); }
  /// Tokens that have KV: the length of the page table.
  [[nodiscard]] std::uint32_t kv_count() const { return kv_.count(); }
  /// The first tokens that have exact KV without a hole.
  [[nodiscard]] std::span<const token> computed_prefix() const;
  /// The first tokens whose KV is, or will be, what computing the log anew gives.
  [[nodiscard]] std::uint32_t exact_count() const;
  /// How often KV that was not exact was lost: what is computed instead has other bits.
  [[nodiscard]] std::uint32_t recomputed_count() const { return recomputed_count_; }

  /// Aborts when tokens that are not known have KV.
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
