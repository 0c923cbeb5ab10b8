#include "runtime/sampling/sampling.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>

#include "runtime/base/portable_math.hpp"
#include "runtime/sampling/noise_words.hpp"
#include "runtime/sampling/row_filter.hpp"

// Every comparison that decides a token uses IEEE arithmetic in a fixed order (portable_math.hpp), so the same logits
// give the same token on every machine.

namespace redline::sampling {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr float minus_infinity = -std::numeric_limits<float>::infinity();

float clean(float logit) { return std::isnan(logit) ? minus_infinity : logit; }

bool in_vocabulary(token t, std::size_t size) { return t >= 0 && static_cast<std::size_t>(t) < size; }

/// Lanes of the loops below; compilers turn them into vectors of any width.
constexpr std::size_t lanes = 16;

float greatest(std::span<const float> logits) {
  std::array<float, lanes> best;
  best.fill(minus_infinity);
  std::size_t i = 0;
  for (; i + lanes <= logits.size(); i += lanes) {
    for (std::size_t k = 0; k < lanes; ++k) best[k] = logits[i + k] > best[k] ? logits[i + k] : best[k];  // never a NaN
  }
  for (; i < logits.size(); ++i) best[0] = logits[i] > best[0] ? logits[i] : best[0];
  return *std::max_element(best.begin(), best.end());
}

token greedy(std::span<const float> logits) { return best_of(logits).id; }

// -- noise

/// The standard Gumbel variable for 32 random bits: between -3.13 and 22.88, increasing with the word.
double gumbel(std::uint32_t word) {
  const double u = (static_cast<double>(word) + 0.5) / 4294967296.0;
  return -portable_log(-portable_log(u));
}
constexpr double gumbel_max = 22.9;
constexpr int gumbel_floor = -4;

/// [k]: words up to this value certainly have less noise than gumbel_floor + k.
const std::array<std::uint32_t, 28>& word_thresholds() {
  static const auto table = [] {
    std::array<std::uint32_t, 28> t{};
    for (std::size_t k = 0; k < t.size(); ++k) {
      const double u = portable_exp(-portable_exp(-(static_cast<double>(k) + gumbel_floor)));
      t[k] = static_cast<std::uint32_t>(std::max(0.0, u * 4294967296.0 - 4));
    }
    return t;
  }();
  return table;
}

/// Finds the token with the greatest scaled logit plus noise. Skips tokens that no noise can lift above the best so
/// far, and most others after one comparison of their random word; neither changes the result.
class gumbel_race {
 public:
  gumbel_race(std::uint64_t seed, std::uint64_t index) : seed_(seed), index_(index) {}

  /// Tokens with a scaled logit below this can no longer win.
  [[nodiscard]] double reach() const { return winning_ - gumbel_max; }
  [[nodiscard]] token winner() const { return winner_; }

  void enter(token id, double scaled) {
    if (scaled < reach()) return;
    enter(id, scaled, noise_words(seed_, index_, static_cast<std::uint32_t>(id) >> 2));
  }
  void enter(token id, double scaled, const std::array<std::uint32_t, 4>& words) {
    const double needed = winning_ - scaled;
    if (needed > gumbel_max) return;
    const std::uint32_t word = words[static_cast<std::uint32_t>(id) & 3];
    if (needed >= gumbel_floor && word < word_thresholds()[static_cast<std::size_t>(needed - gumbel_floor)]) return;
    const double noisy = scaled + gumbel(word);
    if (noisy > winning_ || (noisy == winning_ && id < winner_)) {
      winner_ = id;
      winning_ = noisy;
    }
  }
  [[nodiscard]] std::array<std::uint32_t, 4> words(std::size_t block) const {
    return noise_words(seed_, index_, static_cast<std::uint32_t>(block));
  }
  /// Draws the words of blocks_together blocks. Returns false if `enter` would skip all their tokens. scaled: their
  /// greatest scaled logit. Both tests of `enter` grow with what a token needs, so the greatest word decides for all.
  [[nodiscard]] bool find_words(std::size_t block, double scaled, many_noise_words& out) const {
    const std::uint32_t greatest = draw_noise_words(seed_, index_, static_cast<std::uint32_t>(block), out);
    const double needed = winning_ - scaled;
    if (needed > gumbel_max) return false;
    return !(needed >= gumbel_floor) || greatest >= word_thresholds()[static_cast<std::size_t>(needed - gumbel_floor)];
  }

 private:
  std::uint64_t seed_, index_;
  token winner_ = 0;
  double winning_ = -infinity;
};

/// Samples from the whole vocabulary. best: the greedy token, which is tried first so that most others can be skipped.
token draw_from_all(std::span<const float> logits, double temperature, token best, gumbel_race race) {
  race.enter(best, static_cast<double>(logits[static_cast<std::size_t>(best)]) / temperature);
  const auto enter_block = [&](std::size_t from, const std::array<std::uint32_t, 4>& words) {
    const std::size_t to = std::min(from + 4, logits.size());
    for (std::size_t i = from; i < to; ++i) {
      if (!std::isnan(logits[i]))
        race.enter(static_cast<token>(i), static_cast<double>(logits[i]) / temperature, words);
    }
  };
  std::size_t from = 0;
  many_noise_words words;
  for (; from + tokens_together <= logits.size(); from += tokens_together) {
    const float most = greatest(logits.subspan(from, tokens_together));
    // Slightly lower than exact, because the division rounds.
    const double cut = race.reach() * temperature;
    if (static_cast<double>(most) < cut - std::fabs(cut) * 1e-12) continue;
    if (!race.find_words(from / 4, static_cast<double>(most) / temperature, words)) continue;
    for (std::size_t b = 0; b < blocks_together; ++b) enter_block(from + 4 * b, words.block(b));
  }
  for (; from < logits.size(); from += 4) enter_block(from, race.words(from / 4));
  return race.winner();
}

// -- truncation

struct candidate {
  token id = 0;
  double scaled = 0;  // logit / temperature
};

/// More probable first; ties to the lower id, so that every cut-off below is the same on every machine.
bool before_in_rank(const candidate& a, const candidate& b) {
  return a.scaled != b.scaled ? a.scaled > b.scaled : a.id < b.id;
}

/// The `count` best by rank, unordered; tokens at minus infinity, which are never drawn, may be left out.
std::vector<candidate> ranked_first(std::span<const float> logits, double temperature, std::size_t count) {
  std::vector<candidate> best;
  if (count == 0) return best;
  const auto at = [&](std::size_t i) {
    return candidate{static_cast<token>(i), static_cast<double>(clean(logits[i])) / temperature};
  };
  if (count > logits.size() / 8) {
    for (std::size_t i = 0; i < logits.size(); ++i) {
      if (logits[i] > minus_infinity) best.push_back(at(i));
    }
    if (best.size() > count) {
      std::nth_element(best.begin(), best.begin() + static_cast<std::ptrdiff_t>(count), best.end(), before_in_rank);
      best.resize(count);
    }
    return best;
  }
  // A heap with the last in rank on top. A smaller logit has no greater quotient, so most tokens cost one comparison.
  std::size_t i = 0;
  for (; best.size() < count; ++i) best.push_back(at(i));
  std::make_heap(best.begin(), best.end(), before_in_rank);
  const auto worst = [&] { return clean(logits[static_cast<std::size_t>(best.front().id)]); };
  const auto enter = [&](std::size_t from, std::size_t to) {
    for (std::size_t k = from; k < to; ++k) {
      const candidate c = at(k);
      if (!(c.scaled > best.front().scaled)) continue;  // equals stay out: their ids are higher
      std::pop_heap(best.begin(), best.end(), before_in_rank);
      best.back() = c;
      std::push_heap(best.begin(), best.end(), before_in_rank);
    }
  };
  for (; i + lanes <= logits.size(); i += lanes) {
    const float bound = worst();
    bool any = false;
    for (std::size_t k = 0; k < lanes; ++k) any |= logits[i + k] > bound;
    if (any) enter(i, i + lanes);
  }
  enter(i, logits.size());
  return best;
}

/// Sorts the most probable first. Many candidates are sorted by radix, because a hundred thousand are not rare: top_p
/// 0.9999 at a high temperature.
void sort_by_rank(std::vector<candidate>& c) {
  constexpr std::size_t few = 4096;
  if (c.size() <= few) return std::sort(c.begin(), c.end(), before_in_rank);
  // Sorts by floats, which have the order of the doubles except for ties; greater values get smaller keys.
  struct entry {
    std::uint32_t key, at;
  };
  std::vector<entry> now(c.size()), next(c.size());
  for (std::uint32_t i = 0; i < c.size(); ++i) {
    const auto bits =
        std::bit_cast<std::uint32_t>(static_cast<float>(c[i].scaled) + 0.0F);  // adds 0 to normalize the sign of zero
    now[i] = {(bits >> 31) != 0 ? bits : ~bits & 0x7fffffffU, i};
  }
  for (const unsigned shift : {0U, 11U, 22U}) {
    std::array<std::uint32_t, 2049> begin{};
    for (const entry& e : now) ++begin[(e.key >> shift & 2047U) + 1];
    for (std::size_t i = 1; i < begin.size(); ++i) begin[i] += begin[i - 1];
    for (const entry& e : now) next[begin[e.key >> shift & 2047U]++] = e;
    now.swap(next);
  }
  std::vector<candidate> sorted;
  sorted.reserve(c.size());
  for (std::size_t i = 0; i < now.size();) {
    const std::size_t first = i;
    for (; i < now.size() && now[i].key == now[first].key; ++i) sorted.push_back(c[now[i].at]);
    if (i - first > 1) std::sort(sorted.begin() + static_cast<std::ptrdiff_t>(first), sorted.end(), before_in_rank);
  }
  c = std::move(sorted);
}

/// exp of a difference from the best logit; 0 if it is too small to matter next to 1.
double weight(double below_best) { return below_best < -60 ? 0 : portable_exp(below_best); }

/// The tokens that top_p and min_p can keep, unordered, and the sum of all weights (if top_p needs it).
struct nucleus {
  std::vector<candidate> candidates;
  double total = 0;
};

nucleus nucleus_of(std::span<const float> logits, const sampling_params& p, double best) {
  const double temperature = p.temperature;
  const auto scaled = [&](std::size_t i) { return static_cast<double>(clean(logits[i])) / temperature; };
  nucleus out;
  double floor = -infinity;
  if (p.top_p < 1) {
    for (std::size_t i = 0; i < logits.size(); ++i) out.total += weight(scaled(i) - best);
    // Tokens below (1 - top_p) / vocabulary sum to less than 1 - top_p, so the others reach top_p. Half of that is
    // used, because the sums round.
    const double share = (1 - static_cast<double>(p.top_p)) / static_cast<double>(logits.size()) / 2;
    floor = std::min(best, best + portable_log(out.total * share));
  }
  if (p.min_p > 0) floor = std::max(floor, std::min(best, best + portable_log(static_cast<double>(p.min_p))));
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (const double s = scaled(i); s >= floor) out.candidates.push_back({static_cast<token>(i), s});
  }
  return out;
}

/// Keeps the fewest tokens in rank order that reach top_p of the probability, then those that min_p allows; always the
/// best one.
void truncate(std::vector<candidate>& c, const sampling_params& p, double total) {
  sort_by_rank(c);
  const double best = c.front().scaled;
  if (p.top_p < 1) {
    double sum = 0;
    std::size_t kept = 0;
    while (kept < c.size() && (kept == 0 || sum < static_cast<double>(p.top_p) * total)) {
      sum += weight(c[kept++].scaled - best);
    }
    c.resize(kept);
  }
  if (p.min_p > 0) {
    const double floor = std::min(best, best + portable_log(static_cast<double>(p.min_p)));
    std::erase_if(c, [&](const candidate& x) { return x.scaled < floor; });
  }
}

token draw(std::span<const float> logits, const sampling_params& p, token best_id, gumbel_race race) {
  const double temperature = p.temperature;
  const double best = static_cast<double>(logits[static_cast<std::size_t>(best_id)]) / temperature;
  const bool top_k = p.top_k > 0 && static_cast<std::size_t>(p.top_k) < logits.size();
  const bool cuts_by_probability = p.top_p < 1 || p.min_p > 0;
  if (!top_k && !cuts_by_probability) return draw_from_all(logits, temperature, best_id, race);

  nucleus from;
  if (top_k) {
    from.candidates = ranked_first(logits, temperature, static_cast<std::size_t>(p.top_k));
    if (cuts_by_probability) {
      sort_by_rank(from.candidates);  // this is also the order of the sum
      for (const candidate& c : from.candidates) from.total += weight(c.scaled - best);
    }
  } else {
    from = nucleus_of(logits, p, best);
  }
  if (cuts_by_probability) truncate(from.candidates, p, from.total);
  race.enter(best_id, best);  // first, so that most others can be skipped; it is among the candidates
  for (const candidate& c : from.candidates) race.enter(c.id, c.scaled);
  return race.winner();
}

}  // namespace

best_logit best_of(std::span<const float> logits) {
  const float best = greatest(logits);
  if (best == minus_infinity) return {};
  std::size_t i = 0;
  for (; i + lanes <= logits.size(); i += lanes) {
    bool is_here = false;
    for (std::size_t k = 0; k < lanes; ++k) is_here |= logits[i + k] == best;
    if (is_here) break;
  }
  while (logits[i] != best) ++i;
  return {best, static_cast<token>(i)};
}

// -- rows

row_sampler::row_sampler(const sampling_params& params, const token_context& before)
    : params_(params), index_(before.count) {
  const auto output = before.log.subspan(std::min<std::size_t>(before.prompt_count, before.log.size()));
  const auto end = output.last(std::min(output.size(), params_.sequences_reach()));
  latest_.assign(end.begin(), end.end());
  if (!params_.has_penalties()) return;
  if (before.counts) {
    output_counts_.insert(before.counts->begin(), before.counts->end());
    return;
  }
  for (std::size_t i = 0; i < before.log.size(); ++i) output_counts_[before.log[i]] += i >= before.prompt_count ? 1 : 0;
}

void row_sampler::emit(token id) {
  ++index_;
  if (params_.has_penalties()) ++output_counts_[id];
  if (!params_.banned_sequences.empty()) latest_.push_back(id);
}

/// Applies bias, penalties and bans, into `changed_`.
void row_sampler::adjust(std::span<const float> logits) {
  changed_.assign(logits.begin(), logits.end());
  for (const auto& [id, bias] : params_.logit_bias) {
    if (in_vocabulary(id, changed_.size())) changed_[static_cast<std::size_t>(id)] += bias;
  }
  for (const auto& [id, output_count] : output_counts_) {
    if (!in_vocabulary(id, changed_.size())) continue;
    float& logit = changed_[static_cast<std::size_t>(id)];
    logit = logit > 0 ? logit / params_.repetition_penalty : logit * params_.repetition_penalty;
    if (output_count > 0) {
      logit -= params_.presence_penalty + params_.frequency_penalty * static_cast<float>(output_count);
    }
  }
  if (index_ < params_.banned_before) {
    for (const token id : params_.banned_early) {
      if (in_vocabulary(id, changed_.size())) changed_[static_cast<std::size_t>(id)] = minus_infinity;
    }
  }
  ban_ends_of_sequences();
  if (params_.allowed.empty()) return;
  auto next = params_.allowed.begin();
  for (std::size_t i = 0; i < changed_.size(); ++i) {
    while (next != params_.allowed.end() && *next < static_cast<token>(i)) ++next;
    if (next == params_.allowed.end() || *next != static_cast<token>(i)) changed_[i] = minus_infinity;
  }
}

void row_sampler::ban_ends_of_sequences() {
  for (const auto& sequence : params_.banned_sequences) {
    if (sequence.empty() || sequence.size() - 1 > latest_.size()) continue;
    const bool stands_before = std::equal(sequence.begin(), sequence.end() - 1,
                                          latest_.end() - static_cast<std::ptrdiff_t>(sequence.size() - 1));
    if (stands_before && in_vocabulary(sequence.back(), changed_.size())) {
      changed_[static_cast<std::size_t>(sequence.back())] = minus_infinity;
    }
  }
}

void row_sampler::forbid_others(std::span<const std::uint64_t> allowed) {
  for (std::size_t i = 0; i < changed_.size(); ++i) {
    if (!allows(allowed, static_cast<token>(i))) changed_[i] = minus_infinity;
  }
}

token row_sampler::choose(std::span<const float> logits, std::span<const std::uint64_t> allowed,
                          std::optional<best_logit> known) {
  const bool is_greedy = !(params_.temperature > 0);
  if (known && is_greedy && params_.leaves_logits_alone() && allows(allowed, known->id)) return known->id;
  if (!params_.leaves_logits_alone() || !allowed.empty()) {
    known.reset();
    adjust(logits);
    if (!allowed.empty()) forbid_others(allowed);
    logits = changed_;
  }
  token best = known ? known->id : greedy(logits);
  // If bans leave none of the allowed tokens, the allowed list takes precedence.
  if (!params_.allowed.empty() && !std::isfinite(logits[static_cast<std::size_t>(best)]) &&
      in_vocabulary(params_.allowed.front(), logits.size())) {
    best = params_.allowed.front();
  }
  if (is_greedy || !std::isfinite(logits[static_cast<std::size_t>(best)])) return best;
  return draw(logits, params_, best, gumbel_race(params_.seed, index_));
}

// -- probabilities of the model

namespace {

/// exp(x) for x <= 0 with an error of a millionth, without branches; almost 0 for NaN and far below zero.
float exp_below_zero(float x) {
  constexpr float log2_e = 1.44269504F;
  const float clamped = x > -80.0F ? x : -80.0F;
  const float scaled = clamped * log2_e;
  const auto whole = static_cast<std::int32_t>(scaled - 0.5F);  // nearest, because it is not above zero
  const float part = scaled - static_cast<float>(whole);        // -0.5 to 0.5
  // 2^part, by the series of exp(part * ln 2).
  float power = 1.54035304e-4F;
  power = power * part + 1.33335581e-3F;
  power = power * part + 9.61812911e-3F;
  power = power * part + 5.55041087e-2F;
  power = power * part + 2.40226507e-1F;
  power = power * part + 6.93147181e-1F;
  power = power * part + 1.0F;
  return power * std::bit_cast<float>((whole + 127) << 23);
}

/// log of the sum of exponentials, in order of ids; nullopt if no logit is finite.
std::optional<double> log_sum_exp(std::span<const float> logits) {
  const double best = clean(logits[static_cast<std::size_t>(greedy(logits))]);
  if (!std::isfinite(best)) return std::nullopt;
  double sum = 0;
  for (const float l : logits) sum += weight(static_cast<double>(clean(l)) - best);
  return best + portable_log(sum);
}

}  // namespace

bool is_usable(std::span<const float> logits) { return std::isfinite(greatest(logits)); }

// Drafters need it in each pass, and it decides no token, so it need not be exact to the last bit.
float top_probability(std::span<const float> logits) {
  const float best = greatest(logits);
  if (!std::isfinite(best)) return 0;
  std::array<float, lanes> sums{};
  std::size_t i = 0;
  for (; i + lanes <= logits.size(); i += lanes) {
    for (std::size_t k = 0; k < lanes; ++k) sums[k] += exp_below_zero(logits[i + k] - best);
  }
  for (; i < logits.size(); ++i) sums[0] += exp_below_zero(logits[i] - best);
  double sum = 0;
  for (const float lane : sums) sum += static_cast<double>(lane);
  return static_cast<float>(1 / sum);
}

bool has_probability(std::span<const float> logits, token id, float least, std::span<const std::uint64_t> allowed) {
  const auto logit = [&](std::size_t i) {
    return allows(allowed, static_cast<token>(i)) ? clean(logits[i]) : minus_infinity;
  };
  if (!in_vocabulary(id, logits.size())) return false;
  float best = minus_infinity;
  for (std::size_t i = 0; i < logits.size(); ++i) best = std::max(best, logit(i));
  if (!std::isfinite(best)) return false;
  const auto share = [&](std::size_t i) { return weight(static_cast<double>(logit(i)) - static_cast<double>(best)); };
  double sum = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) sum += share(i);
  return share(static_cast<std::size_t>(id)) >= static_cast<double>(least) * sum;
}

emitted_logprob logprob_of(std::span<const float> logits, token id, std::uint32_t top_count) {
  const auto norm = log_sum_exp(logits);
  const auto of = [&](token t) {
    if (!norm || !in_vocabulary(t, logits.size())) return minus_infinity;
    return static_cast<float>(static_cast<double>(clean(logits[static_cast<std::size_t>(t)])) - *norm);
  };
  emitted_logprob out{.logprob = of(id), .top = {}};
  auto ranked = ranked_first(logits, 1, std::min<std::size_t>(top_count, logits.size()));
  std::sort(ranked.begin(), ranked.end(), before_in_rank);
  for (const candidate& c : ranked) out.top.push_back({c.id, of(c.id)});
  return out;
}

}  // namespace redline::sampling
