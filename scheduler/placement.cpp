#include "scheduler/placement.hpp"

#include <algorithm>

#include "runtime/base/hash.hpp"

namespace redline::scheduler {
namespace {

// Before a worker has said what rows cost there: only ratios between workers matter then.
constexpr double row_us_guess = 100;
constexpr double pass_us_guess = 1000;

/// Tokens that the i-th of the hashes of a prompt covers.
std::uint32_t covered_tokens(std::size_t i, std::size_t count, std::uint32_t prompt_tokens) {
  const std::uint32_t blocks = prompt_tokens / prefix_block_tokens;
  return (i + 1 == count ? blocks : 1U << i) * prefix_block_tokens;
}

}  // namespace

std::vector<std::uint64_t> hash_prefixes(tenant_id scope, std::span<const token> prompt) {
  std::vector<std::uint64_t> out;
  fnv1a hash;
  const auto add = [&](std::uint64_t value) {
    for (int i = 0; i < 8; ++i) hash.add(static_cast<std::uint8_t>(value >> (8 * i)));
  };
  add(scope.value);
  const std::size_t blocks = prompt.size() / prefix_block_tokens;
  for (std::size_t b = 1; b <= blocks; ++b) {
    for (const token t : prompt.subspan((b - 1) * prefix_block_tokens, prefix_block_tokens)) {
      add(static_cast<std::uint64_t>(t));
    }
    if (b == blocks || (b & (b - 1)) == 0) out.push_back(hash.value());
  }
  return out;
}

placement::placement() : placement(limits{}) {}

void placement::note(worker_number number, const worker_load& load) { workers_[number] = {.load = load}; }

void placement::remove(worker_number number) { workers_.erase(number); }

bool placement::is_candidate(worker_number number, const placement_question& question) const {
  const auto at = workers_.find(number);
  if (at == workers_.end() || !at->second.load.takes_work) return false;
  return !question.may_be || question.may_be(number);
}

std::uint32_t placement::known_tokens(worker_number number, const placement_question& question) const {
  for (std::size_t i = question.prefixes.size(); i-- > 0;) {
    const auto at = prefixes_.find(question.prefixes[i]);
    if (at != prefixes_.end() && at->second.worker == number) {
      return std::min(at->second.tokens, question.prompt_tokens);
    }
  }
  return 0;
}

double placement::predict_us(worker_number number, const placement_question& question) const {
  const worker& w = workers_.at(number);
  const double row_us = w.load.row_us > 0 ? w.load.row_us : row_us_guess;
  const double pass_us = w.load.pass_us > 0 ? w.load.pass_us : pass_us_guess;
  const double answers = w.load.running + w.load.waiting + w.placed;
  // Every answer that runs adds rows to each pass; those over the places for them wait for whole answers to end, of
  // which a pass is the least that is known.
  const double over = std::max(0.0, answers - w.load.running_max + 1);
  const double rows = question.prompt_tokens - known_tokens(number, question) + w.placed_rows;
  return pass_us + answers * row_us + over * pass_us * 100 + rows * row_us;
}

std::optional<worker_number> placement::choose(const placement_question& question) {
  std::vector<worker_number> able;
  for (const auto& [number, w] : workers_) {
    if (is_candidate(number, question)) able.push_back(number);
  }
  if (able.empty()) return std::nullopt;
  // Those with room before those without.
  const auto has_room = [&](worker_number number) {
    const worker& w = workers_.at(number);
    return w.load.running + w.load.waiting + w.placed < w.load.running_max + w.load.waiting_max;
  };
  if (question.needs_room || std::any_of(able.begin(), able.end(), has_room)) {
    std::erase_if(able, [&](worker_number n) { return !has_room(n); });
    if (able.empty()) return std::nullopt;
  }
  std::vector<worker_number> looked_at;
  const auto consider = [&](worker_number number) {
    if (std::binary_search(able.begin(), able.end(), number)) looked_at.push_back(number);
  };
  if (const auto at = affinities_.find(question.affinity); question.affinity != 0 && at != affinities_.end()) {
    consider(at->second);
  }
  for (std::size_t i = question.prefixes.size(); i-- > 0;) {
    const auto at = prefixes_.find(question.prefixes[i]);
    if (at == prefixes_.end()) continue;
    consider(at->second.worker);
    break;
  }
  const std::size_t first = question.random % able.size();
  looked_at.push_back(able[first]);
  if (able.size() > 1) {
    const std::size_t step = 1 + (question.random / able.size()) % (able.size() - 1);
    looked_at.push_back(able[(first + step) % able.size()]);
  }
  const auto best = *std::min_element(looked_at.begin(), looked_at.end(), [&](worker_number a, worker_number b) {
    return predict_us(a, question) < predict_us(b, question);
  });
  remember(best, question);
  return best;
}

void placement::remember(worker_number number, const placement_question& question) {
  worker& w = workers_.at(number);
  w.placed_rows += question.prompt_tokens - known_tokens(number, question);
  ++w.placed;
  if (question.affinity != 0) {
    if (affinities_.insert_or_assign(question.affinity, number).second) {
      affinity_order_.push_back(question.affinity);
      if (affinity_order_.size() > limits_.affinities_max) {
        affinities_.erase(affinity_order_.front());
        affinity_order_.pop_front();
      }
    }
  }
  for (std::size_t i = 0; i < question.prefixes.size(); ++i) {
    const kept_prefix kept{number, covered_tokens(i, question.prefixes.size(), question.prompt_tokens)};
    if (!prefixes_.insert_or_assign(question.prefixes[i], kept).second) continue;
    prefix_order_.push_back(question.prefixes[i]);
    if (prefix_order_.size() > limits_.prefixes_max) {
      prefixes_.erase(prefix_order_.front());
      prefix_order_.pop_front();
    }
  }
}

}  // namespace redline::scheduler
