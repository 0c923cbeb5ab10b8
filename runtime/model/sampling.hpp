#pragma once

#include <cstdint>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/base/ids.hpp"

namespace redline::model {

/// How the next token is chosen from logits. Defaults mean greedy.
struct sampling_params {
  float temperature = 0;         // 0: greedy
  std::int32_t top_k = 0;        // 0: all
  float top_p = 1;               // 1: all
  float min_p = 0;               // 0: all
  float repetition_penalty = 1;  // over prompt and output; 1: off
  float presence_penalty = 0;    // over the output
  float frequency_penalty = 0;   // over the output
  std::uint64_t seed = 0;
  std::vector<std::pair<token, float>> logit_bias;
  std::vector<token> banned_early;  // cannot be chosen at an index below `banned_before`: end tokens, for min_tokens
  std::uint32_t banned_before = 0;

  /// Some penalty looks at the tokens before.
  [[nodiscard]] bool needs_history() const {
    return repetition_penalty != 1 || presence_penalty != 0 || frequency_penalty != 0;
  }
  [[nodiscard]] bool leaves_logits_alone() const {
    return !needs_history() && logit_bias.empty() && banned_early.empty();
  }
  bool operator==(const sampling_params&) const = default;
  static constexpr auto fields(auto& self) {
    return std::tie(self.temperature, self.top_k, self.top_p, self.min_p, self.repetition_penalty,
                    self.presence_penalty, self.frequency_penalty, self.seed, self.logit_bias, self.banned_early,
                    self.banned_before);
  }
};

/// One alternative at a position, with the model's own log-probability (before temperature and penalties).
struct token_logprob {
  token id = 0;
  float logprob = 0;
  bool operator==(const token_logprob&) const = default;
  static constexpr auto fields(auto& self) { return std::tie(self.id, self.logprob); }
};

/// What a client asked to know about one emitted token.
struct emitted_logprob {
  float logprob = 0;
  std::vector<token_logprob> top;  // most probable first
  bool operator==(const emitted_logprob&) const = default;
  static constexpr auto fields(auto& self) { return std::tie(self.logprob, self.top); }
};

/// The committed tokens before the ones being chosen.
struct token_context {
  std::span<const token> log;      // may be empty unless params.needs_history(): nothing looks at it then
  std::uint64_t count = 0;         // how many there are; more than log.size() when some have left the window
  std::uint32_t prompt_count = 0;  // the first of them that are the prompt
};

/// Chooses the tokens of consecutive rows of logits; counts the log once. Refers to `params`.
///
/// Order of processing: logit bias, repetition penalty (over prompt and output), presence and frequency penalties (over
/// the output), bans, the mask, temperature, top-k, top-p, min-p. A NaN logit counts as minus infinity. top-p keeps the
/// shortest run of the most probable tokens that holds it, of what top-k left. Ties, at every boundary, go to the
/// lowest id.
///
/// Randomness depends on (seed, index) only, index being the number of tokens before, prompt included: Gumbel-max with
/// noise from a counter-based generator keyed by (seed, index, token), so that a draft model that samples with the same
/// parameters tends to agree with its target. The same logits give the same token on every machine.
class row_sampler {
 public:
  row_sampler(const sampling_params& params, const token_context& before);
  /// logits: [vocabulary], not empty. allowed: a bit per token, the others cannot be chosen; empty: all. Without bias,
  /// bans, penalties and a mask the greedy choice allocates nothing.
  token choose(std::span<const float> logits, std::span<const std::uint64_t> allowed = {});
  /// The token at this index is decided; it counts as output for the rows to come.
  void emit(token id);

 private:
  void adjust(std::span<const float> logits);
  void forbid_others(std::span<const std::uint64_t> allowed);

  const sampling_params& params_;
  std::uint64_t index_;
  /// How often each token of prompt and output stands in the output; empty unless penalties need it.
  std::unordered_map<token, std::uint32_t> output_counts_;
  std::vector<float> changed_;
};

/// One row: the token that follows `before` and then `accepted`, which counts as output.
token sample(std::span<const float> logits, const sampling_params& params, const token_context& before,
             std::span<const token> accepted = {});

/// The model's probability of its most probable token. logits: [vocabulary].
float top_probability(std::span<const float> logits);

/// Log-probability of `id` and of the `top_count` most probable tokens. logits: [vocabulary].
emitted_logprob logprob_of(std::span<const float> logits, token id, std::uint32_t top_count);

}  // namespace redline::model
