#include "runtime/model/sampling.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "runtime/base/philox.hpp"

namespace redline::model {
namespace {

constexpr float minus_infinity = -std::numeric_limits<float>::infinity();

float clean(float logit) { return std::isnan(logit) ? minus_infinity : logit; }

bool in_vocabulary(token t, std::size_t size) { return t >= 0 && static_cast<std::size_t>(t) < size; }

token greedy(std::span<const float> logits) {
  std::size_t best = 0;
  float best_logit = minus_infinity;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] > best_logit) {  // a NaN never is
      best = i;
      best_logit = logits[i];
    }
  }
  return static_cast<token>(best);
}

/// The standard Gumbel noise of (seed, index, id), from 32 random bits: between -3.1 and 22.2.
double gumbel(std::uint64_t seed, std::uint64_t index, token id) {
  const auto words = philox4x32({static_cast<std::uint32_t>(id), static_cast<std::uint32_t>(index),
                                 static_cast<std::uint32_t>(index >> 32), 0x5265646cu},
                                {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
  const double u = (static_cast<double>(words[0]) + 0.5) / 4294967296.0;
  return -std::log(-std::log(u));
}
// A token this far (in units of temperature) under the best cannot win, whatever noise both get.
constexpr double gumbel_spread_max = 25.5;

void penalise(std::vector<float>& logits, const sampling_params& p, const token_context& before,
              std::span<const token> accepted) {
  if (!p.needs_history()) return;
  struct occurrences {
    std::uint32_t anywhere = 0;
    std::uint32_t output = 0;
  };
  std::unordered_map<token, occurrences> seen;
  for (std::size_t i = 0; i < before.log.size(); ++i) {
    auto& o = seen[before.log[i]];
    ++o.anywhere;
    if (i >= before.prompt_count) ++o.output;
  }
  for (const token t : accepted) {
    ++seen[t].anywhere;
    ++seen[t].output;
  }
  for (const auto& [id, o] : seen) {
    if (!in_vocabulary(id, logits.size())) continue;
    float& logit = logits[static_cast<std::size_t>(id)];
    logit = logit > 0 ? logit / p.repetition_penalty : logit * p.repetition_penalty;
    if (o.output > 0) logit -= p.presence_penalty + p.frequency_penalty * static_cast<float>(o.output);
  }
}

/// The logits after bias, bans and penalties. Only called when one of them is on.
std::vector<float> adjusted(std::span<const float> logits, const sampling_params& p, const token_context& before,
                            std::span<const token> accepted) {
  std::vector<float> out(logits.begin(), logits.end());
  for (const auto& [id, bias] : p.logit_bias) {
    if (in_vocabulary(id, out.size())) out[static_cast<std::size_t>(id)] += bias;
  }
  penalise(out, p, before, accepted);
  if (before.count + accepted.size() < p.banned_before) {
    for (const token id : p.banned_early) {
      if (in_vocabulary(id, out.size())) out[static_cast<std::size_t>(id)] = minus_infinity;
    }
  }
  return out;
}

struct candidate {
  token id = 0;
  double scaled = 0;  // logit / temperature
};

/// More probable first; ties to the lower id, so that every cut-off below is the same on every machine.
bool before_in_rank(const candidate& a, const candidate& b) {
  return a.scaled != b.scaled ? a.scaled > b.scaled : a.id < b.id;
}

/// Tokens within reach of the best, unordered. Without truncation those that noise can lift suffice.
std::vector<candidate> candidates_of(std::span<const float> logits, const sampling_params& p, double best) {
  const double temperature = p.temperature;
  const bool truncates = p.top_k > 0 || p.top_p < 1 || p.min_p > 0;
  const double floor = truncates ? -std::numeric_limits<double>::infinity() : best / temperature - gumbel_spread_max;
  std::vector<candidate> out;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double scaled = static_cast<double>(clean(logits[i])) / temperature;
    if (scaled > floor || (truncates && std::isfinite(scaled))) out.push_back({static_cast<token>(i), scaled});
  }
  return out;
}

/// Keeps the top_k, then the shortest prefix that holds top_p of the probability, then what min_p allows.
void truncate(std::vector<candidate>& c, const sampling_params& p) {
  if (p.top_k > 0 && static_cast<std::size_t>(p.top_k) < c.size()) {
    std::nth_element(c.begin(), c.begin() + p.top_k, c.end(), before_in_rank);
    c.resize(static_cast<std::size_t>(p.top_k));
  }
  if (p.top_p >= 1 && p.min_p <= 0) return;
  std::sort(c.begin(), c.end(), before_in_rank);
  const double best = c.front().scaled;
  if (p.top_p < 1) {
    double total = 0;
    for (const auto& x : c) total += std::exp(x.scaled - best);
    double sum = 0;
    std::size_t kept = 0;
    while (kept < c.size()) {
      sum += std::exp(c[kept].scaled - best);
      ++kept;
      if (sum >= static_cast<double>(p.top_p) * total) break;
    }
    c.resize(std::max<std::size_t>(kept, 1));
  }
  if (p.min_p > 0) {
    const double floor = best + std::log(static_cast<double>(p.min_p));
    std::erase_if(c, [&](const candidate& x) { return x.scaled < floor && x.scaled != best; });
  }
}

}  // namespace

token sample(std::span<const float> raw, const sampling_params& p, const token_context& before,
             std::span<const token> accepted) {
  std::vector<float> changed;
  std::span<const float> logits = raw;
  if (!p.leaves_logits_alone()) {
    changed = adjusted(raw, p, before, accepted);
    logits = changed;
  }
  const token best_id = greedy(logits);
  const double best = clean(logits[static_cast<std::size_t>(best_id)]);
  if (!(p.temperature > 0) || !std::isfinite(best)) return best_id;

  auto c = candidates_of(logits, p, best);
  if (c.empty()) return best_id;
  truncate(c, p);
  const std::uint64_t index = before.count + accepted.size();
  token winner = best_id;
  double winning = -std::numeric_limits<double>::infinity();
  for (const auto& x : c) {
    const double noisy = x.scaled + gumbel(p.seed, index, x.id);
    if (noisy > winning || (noisy == winning && x.id < winner)) {
      winner = x.id;
      winning = noisy;
    }
  }
  return winner;
}

namespace {

/// log of the sum of exponentials, in order of ids.
double log_sum_exp(std::span<const float> logits, double best) {
  double sum = 0;
  for (const float l : logits) sum += std::exp(static_cast<double>(clean(l)) - best);
  return best + std::log(sum);
}

}  // namespace

float top_probability(std::span<const float> logits) {
  const double best = clean(logits[static_cast<std::size_t>(greedy(logits))]);
  if (!std::isfinite(best)) return 0;
  return static_cast<float>(std::exp(best - log_sum_exp(logits, best)));
}

emitted_logprob logprob_of(std::span<const float> logits, token id, std::uint32_t top_count) {
  const double best = clean(logits[static_cast<std::size_t>(greedy(logits))]);
  const double norm = std::isfinite(best) ? log_sum_exp(logits, best) : 0;
  const auto of = [&](std::size_t i) { return static_cast<float>(static_cast<double>(clean(logits[i])) - norm); };
  emitted_logprob out;
  out.logprob = in_vocabulary(id, logits.size()) ? of(static_cast<std::size_t>(id)) : minus_infinity;
  std::vector<candidate> ranked;
  for (std::size_t i = 0; i < logits.size(); ++i) ranked.push_back({static_cast<token>(i), clean(logits[i])});
  const std::size_t count = std::min<std::size_t>(top_count, ranked.size());
  std::partial_sort(ranked.begin(), ranked.begin() + static_cast<std::ptrdiff_t>(count), ranked.end(), before_in_rank);
  for (std::size_t i = 0; i < count; ++i) {
    out.top.push_back({ranked[i].id, of(static_cast<std::size_t>(ranked[i].id))});
  }
  return out;
}

}  // namespace redline::model
