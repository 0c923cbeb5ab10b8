#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/base/ids.hpp"
#include "runtime/sampling/token_counter.hpp"

namespace redline::sampling {

/// How the next token is chosen from logits. The default is greedy.
struct sampling_params {
  float temperature = 0;         // 0 means greedy
  std::int32_t top_k = 0;        // 0 means all
  float top_p = 1;               // 1 means all
  float min_p = 0;               // 0 means all
  float repetition_penalty = 1;  // over prompt and output; 1 means off
  float presence_penalty = 0;    // over the output
  float frequency_penalty = 0;   // over the output
  std::uint64_t seed = 0;
  std::vector<std::pair<token, float>> logit_bias;
  std::vector<token> banned_early;  // never chosen at an index below `banned_before` (end tokens, for min_tokens)
  std::uint32_t banned_before = 0;
  std::vector<token> allowed;  // in order; only these may be chosen; empty means all
  /// Sequences that the output never completes: the last token is not chosen after the others.
  std::vector<std::vector<token>> banned_sequences;

  [[nodiscard]] bool has_penalties() const {
    return repetition_penalty != 1 || presence_penalty != 0 || frequency_penalty != 0;
  }
  /// How many of the latest tokens determine banned sequences.
  [[nodiscard]] std::size_t sequences_reach() const {
    std::size_t longest = 1;
    for (const auto& sequence : banned_sequences) longest = std::max(longest, sequence.size());
    return longest - 1;
  }
  /// Whether the choice depends on earlier tokens.
  [[nodiscard]] bool needs_history() const { return has_penalties() || !banned_sequences.empty(); }
  [[nodiscard]] bool leaves_logits_alone() const {
    return !needs_history() && logit_bias.empty() && banned_early.empty() && allowed.empty();
  }
  bool operator==(const sampling_params&) const = default;
  static constexpr auto fields(auto& self) {
    return std::tie(self.temperature, self.top_k, self.top_p, self.min_p, self.repetition_penalty,
                    self.presence_penalty, self.frequency_penalty, self.seed, self.logit_bias, self.banned_early,
                    self.banned_before, self.allowed, self.banned_sequences);
  }
};

/// One alternative at a position, with the model's own log-probability (before temperature and penalties).
struct token_logprob {
  token id = 0;
  float logprob = 0;
  bool operator==(const token_logprob&) const = default;
  static constexpr auto fields(auto& self) { return std::tie(self.id, self.logprob); }
};

/// The log-probabilities of one emitted token.
struct emitted_logprob {
  float logprob = 0;
  std::vector<token_logprob> top;  // most probable first
  bool operator==(const emitted_logprob&) const = default;
  static constexpr auto fields(auto& self) { return std::tie(self.logprob, self.top); }
};

/// The committed tokens before the ones being chosen.
struct token_context {
  std::span<const token> log;  // may be empty unless params.needs_history()
  std::uint64_t count = 0;     // number of committed tokens; more than log.size() if some were evicted from the window
  std::uint32_t prompt_count = 0;  // the leading tokens that are the prompt
  /// Counts of the log's tokens for penalties, made beforehand. The log may then be only the end of the output, as far
  /// as sampling_params::sequences_reach(), without a prompt.
  std::optional<std::span<const token_count>> counts{};
};

/// The greatest of a row's logits, ignoring NaN; the first on a tie. Minus infinity and 0 if none is greater.
struct best_logit {
  float value = -std::numeric_limits<float>::infinity();
  token id = 0;
};
/// logits: [vocabulary].
best_logit best_of(std::span<const float> logits);

/// Chooses the tokens of consecutive rows of logits; counts the log once. Refers to `params`.
///
/// Order of processing: logit bias, repetition penalty (over prompt and output), presence and frequency penalties (over
/// the output), bans, the allowed tokens, the mask, temperature, top-k, top-p, min-p. A NaN logit counts as minus
/// infinity. Of the tokens that top-k leaves, top-p keeps the fewest most probable ones whose sum reaches it. Ties, at
/// every boundary, go to the lowest id.
///
/// Randomness depends only on (seed, index), where index is the number of earlier tokens, including the prompt:
/// Gumbel-max with noise from a counter-based generator keyed by (seed, index, token). So a draft model that samples
/// with the same parameters tends to agree with its target, and the same logits give the same token on every machine.
class row_sampler {
 public:
  row_sampler(const sampling_params& params, const token_context& before);
  /// logits: [vocabulary], not empty. allowed: one bit per token that may be chosen; empty means all. best: the best
  /// logit if it is already known; a greedy choice without bias, bans and penalties then reads no logits if that token
  /// is allowed.
  /// Allocates nothing.
  token choose(std::span<const float> logits, std::span<const std::uint64_t> allowed = {},
               std::optional<best_logit> best = std::nullopt);
  /// Commits the token at this index, which then counts as output for the following rows.
  void emit(token id);

 private:
  void adjust(std::span<const float> logits);
  void ban_ends_of_sequences();
  void forbid_others(std::span<const std::uint64_t> allowed);

  const sampling_params& params_;
  std::uint64_t index_;
  /// Occurrences in the output, by token of prompt or output; empty unless penalties need it.
  std::unordered_map<token, std::uint32_t> output_counts_;
  std::vector<token> latest_;  // the end of the output, as far as banned sequences reach
  std::vector<float> changed_;
};

/// Whether a token can be chosen at all: at least one logit is finite and none is plus infinity. logits: [vocabulary].
bool is_usable(std::span<const float> logits);

/// The model's probability of its most probable token. logits: [vocabulary].
float top_probability(std::span<const float> logits);

/// Whether the model's own probability of `id`, among the allowed tokens only, is at least `least`. The sum has the
/// order of ids, so the same logits give the same answer on every machine. logits: [vocabulary].
bool has_probability(std::span<const float> logits, token id, float least, std::span<const std::uint64_t> allowed);

/// Log-probability of `id`, and of the `top_count` most probable tokens. logits: [vocabulary].
emitted_logprob logprob_of(std::span<const float> logits, token id, std::uint32_t top_count);

}  // namespace redline::sampling
