#include "bench/studies/fleet/fleet_placer.hpp"

#include <algorithm>
#include <map>
#include <string>

namespace redline::studies {
namespace {

using scheduler::placement_question;
using scheduler::worker_load;
using scheduler::worker_number;

class redline_placer final : public fleet_placer {
 public:
  void note(worker_number worker, const worker_load& load) override { placement_.note(worker, load); }
  void learn(worker_number worker, const scheduler::kept_change& change) override { placement_.learn(worker, change); }
  void remove(worker_number worker) override { placement_.remove(worker); }
  std::optional<worker_number> choose(const placement_question& question) override {
    return placement_.choose(question);
  }

 private:
  scheduler::placement placement_;
};

/// Knows the workers and how many answers it gave to each, but nothing about their work.
class load_balancer : public fleet_placer {
 public:
  void note(worker_number worker, const worker_load& load) override {
    if (load.takes_work) connections_.try_emplace(worker, 0);
  }
  void remove(worker_number worker) override { connections_.erase(worker); }
  std::optional<worker_number> choose(const placement_question& question) override {
    std::vector<worker_number> able;
    for (const auto& [worker, count] : connections_) {
      if (!question.may_be || question.may_be(worker)) able.push_back(worker);
    }
    if (able.empty()) return std::nullopt;
    const worker_number chosen = choose_of(able, question.random);
    ++connections_.at(chosen);
    return chosen;
  }
  void leave(worker_number worker) override {
    const auto at = connections_.find(worker);
    if (at != connections_.end() && at->second > 0) --at->second;
  }

 protected:
  virtual worker_number choose_of(const std::vector<worker_number>& able, std::uint32_t random) = 0;
  [[nodiscard]] std::uint32_t connections(worker_number worker) const { return connections_.at(worker); }

 private:
  std::map<worker_number, std::uint32_t> connections_;
};

class random_placer final : public load_balancer {
  worker_number choose_of(const std::vector<worker_number>& able, std::uint32_t random) override {
    return able[random % able.size()];
  }
};

class round_robin final : public load_balancer {
  worker_number choose_of(const std::vector<worker_number>& able, std::uint32_t) override {
    const auto next = std::upper_bound(able.begin(), able.end(), last_);
    return last_ = next == able.end() ? able.front() : *next;
  }
  worker_number last_ = 0;
};

class least_connections final : public load_balancer {
  worker_number choose_of(const std::vector<worker_number>& able, std::uint32_t random) override {
    // A random choice breaks ties, because otherwise all gateways would choose the first worker.
    std::uint32_t least = connections(able.front());
    std::vector<worker_number> best;
    for (const worker_number w : able) {
      if (connections(w) < least) best.clear();
      least = std::min(least, connections(w));
      if (connections(w) == least) best.push_back(w);
    }
    return best[random % best.size()];
  }
};

}  // namespace

result<std::unique_ptr<fleet_placer>> make_fleet_placer(std::string_view name) {
  if (name == "redline") return std::unique_ptr<fleet_placer>(std::make_unique<redline_placer>());
  if (name == "random") return std::unique_ptr<fleet_placer>(std::make_unique<random_placer>());
  if (name == "round-robin") return std::unique_ptr<fleet_placer>(std::make_unique<round_robin>());
  if (name == "least-connections") return std::unique_ptr<fleet_placer>(std::make_unique<least_connections>());
  return failure{
      errc::invalid_argument,
      "expected a placement redline, random, round-robin or least-connections, found '" + std::string(name) + "'"};
}

}  // namespace redline::studies
