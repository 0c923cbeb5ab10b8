#include "scheduler/placement.hpp"

#include <algorithm>

namespace redline::scheduler {
namespace {

// Used before a worker has reported its costs: then only ratios between workers matter.
constexpr double row_us_guess = 100;
constexpr double pass_us_guess = 1000;

}  // namespace

placement::placement() : placement(limits{}) {}

void placement::note(worker_number number, const worker_load& load) {
  worker& w = workers_[number];
  w.load = load;
  w.placed = 0;
  w.placed_rows = 0;
}

void placement::learn(worker_number number, const kept_change& change) {
  worker& w = workers_[number];
  ++w.learned;
  if (change.is_all) {
    for (const auto key : std::vector<std::uint64_t>(w.kept.begin(), w.kept.end())) drop(number, w, key);
  }
  for (const auto key : change.dropped) drop(number, w, key);
  for (const auto key : change.added) keep(number, w, key);
}

void placement::keep(worker_number number, worker& w, std::uint64_t key) {
  if (w.kept.size() < limits_.kept_max && w.kept.insert(key).second) kept_[key].push_back(number);
}

void placement::drop(worker_number number, worker& w, std::uint64_t key) {
  if (w.kept.erase(key) == 0) return;
  const auto at = kept_.find(key);
  std::erase(at->second, number);
  if (at->second.empty()) kept_.erase(at);
}

void placement::remove(worker_number number) {
  if (!workers_.contains(number)) return;
  learn(number, {.is_all = true});
  workers_.erase(number);
}

bool placement::is_candidate(worker_number number, const placement_question& question) const {
  const auto at = workers_.find(number);
  if (at == workers_.end() || !at->second.load.takes_work) return false;
  return !question.may_be || question.may_be(number);
}

std::vector<worker_number> placement::holders_of(std::uint64_t key) const {
  std::vector<worker_number> out;
  if (const auto at = kept_.find(key); at != kept_.end()) out = at->second;
  const auto placed = placed_.find(key);
  if (placed != placed_.end() && keeps(placed->second.worker, key)) out.push_back(placed->second.worker);
  return out;
}

bool placement::keeps(worker_number number, std::uint64_t key) const {
  const auto at = workers_.find(number);
  if (at == workers_.end()) return false;
  if (at->second.kept.contains(key)) return true;
  const auto placed = placed_.find(key);
  return placed != placed_.end() && placed->second.worker == number &&
         at->second.learned - placed->second.learned < limits_.placed_learns;
}

std::uint32_t placement::known_tokens(worker_number number, const placement_question& question) const {
  for (std::size_t i = question.prefixes.size(); i-- > 0;) {
    if (!keeps(number, question.prefixes[i])) continue;
    return std::min(static_cast<std::uint32_t>(i + 1) * prefix_block_tokens, question.prompt_tokens);
  }
  return 0;
}

double placement::predict_us(worker_number number, const placement_question& question) const {
  const worker& w = workers_.at(number);
  const double row_us = w.load.row_us > 0 ? w.load.row_us : row_us_guess;
  const double pass_us = w.load.pass_us > 0 ? w.load.pass_us : pass_us_guess;
  const double answers = w.load.running + w.load.waiting + w.placed;
  // Every running answer adds rows to each pass. Answers beyond the slots wait for whole answers to end; the only known
  // lower bound for that is a pass.
  const double over = std::max(0.0, answers - w.load.running_max + 1);
  const double rows = question.prompt_tokens - known_tokens(number, question) + w.placed_rows +
                      static_cast<double>(w.load.pending_rows);
  // On an idle worker no pass has to end first.
  return (answers > 0 ? pass_us : 0) + answers * row_us + over * pass_us * 100 + rows * row_us;
}

std::optional<worker_number> placement::choose(const placement_question& question) {
  std::vector<worker_number> able;
  for (const auto& [number, w] : workers_) {
    if (is_candidate(number, question)) able.push_back(number);
  }
  if (able.empty()) return std::nullopt;
  // Workers with capacity come before full ones.
  const auto has_room = [&](worker_number number) {
    const worker& w = workers_.at(number);
    return w.load.running + w.load.waiting + w.placed < w.load.running_max + w.load.waiting_max;
  };
  if (question.needs_room || std::any_of(able.begin(), able.end(), has_room)) {
    std::erase_if(able, [&](worker_number n) { return !has_room(n); });
    if (able.empty()) return std::nullopt;
  }
  std::vector<worker_number> looked_at;
  const auto is_able = [&](worker_number number) { return std::binary_search(able.begin(), able.end(), number); };
  const auto consider_two_of = [&](const std::vector<worker_number>& some) {
    const std::size_t first = question.random % some.size();
    looked_at.push_back(some[first]);
    if (some.size() < 2) return;
    const std::size_t step = 1 + (question.random / some.size()) % (some.size() - 1);
    looked_at.push_back(some[(first + step) % some.size()]);
  };
  if (const auto at = affinities_.find(question.affinity);
      question.affinity != 0 && at != affinities_.end() && is_able(at->second)) {
    looked_at.push_back(at->second);
  }
  for (std::size_t i = question.prefixes.size(); i-- > 0;) {
    auto holders = holders_of(question.prefixes[i]);
    std::erase_if(holders, [&](worker_number n) { return !is_able(n); });
    if (holders.empty()) continue;
    consider_two_of(holders);
    break;
  }
  consider_two_of(able);
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
  for (const auto key : question.prefixes) {
    if (!placed_.insert_or_assign(key, placed_prefix{number, w.learned}).second) continue;
    placed_order_.push_back(key);
    if (placed_order_.size() > limits_.prefixes_max) {
      placed_.erase(placed_order_.front());
      placed_order_.pop_front();
    }
  }
}

}  // namespace redline::scheduler
