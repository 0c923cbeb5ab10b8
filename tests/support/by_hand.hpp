#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "runtime/model/transformer.hpp"
#include "scheduler/round.hpp"
#include "tests/support/sample.hpp"
#include "tests/support/tiny_model.hpp"

namespace redline::test {

struct tiny_weights {
  std::unique_ptr<model::transformer> make(std::uint32_t pages) {
    return std::move(*model::transformer::create(weights, table, team,
                                                 {.pages_count = pages, .kv = model::kv_type::f32, .rows_max = 64}));
  }
  const kernels::kernel_table& table = *kernels::process_table().table;
  kernels::worker_team team{1};
  std::shared_ptr<const model::weights> weights = *model::load_weights(*test::make_tiny_model().file(), table, team);
};
inline tiny_weights& shared_weights() {
  static tiny_weights w;
  return w;
}

/// A log, the set of its tokens that are in the table, and the table.
class by_hand {
 public:
  explicit by_hand(std::vector<token> prompt) : log_(std::move(prompt)), has_(log_.size(), false) {}

  [[nodiscard]] std::uint32_t log_count() const { return static_cast<std::uint32_t>(log_.size()); }
  /// Computes KV for all but the last token.
  void compute_cache() {
    forget_from(log_count() - 1);
    compute(log_count() - 1, 0);
  }
  /// Samples the next token and appends it to the log. `evicted_count` counts the tokens that have left the log.
  token say(const sampling::sampling_params& sampling = {}, std::uint64_t evicted_count = 0) {
    sampling_ = sampling;
    const token next = compute(log_count(), evicted_count);
    log_.push_back(next);
    has_.push_back(false);
    return next;
  }
  void splice(const scheduler::log_splice& s) {
    if (!kv::keeps_later(s.policy)) forget_from(s.at);
    const std::uint32_t at = covered_before(s.at);
    const std::uint32_t removed = covered_before(s.at + s.removed_count) - at;
    const auto shift = kv::moves_later(s.policy)
                           ? static_cast<std::int32_t>(s.tokens.size()) - static_cast<std::int32_t>(s.removed_count)
                           : 0;
    table_.splice(pool_, at, removed, shift);
    if (s.policy == kv::splice_policy::eager) model_->move_tokens(table_.apply_offsets(pool_, at));
    const auto from = log_.begin() + s.at;
    log_.insert(log_.erase(from, from + s.removed_count), s.tokens.begin(), s.tokens.end());
    const auto has = has_.begin() + s.at;
    has_.insert(has_.erase(has, has + s.removed_count), s.tokens.size(), false);
  }

 private:
  [[nodiscard]] std::uint32_t covered_before(std::uint32_t end) const {
    return static_cast<std::uint32_t>(std::count(has_.begin(), has_.begin() + end, true));
  }
  void forget_from(std::uint32_t at) {
    table_.truncate(pool_, covered_before(at));
    std::fill(has_.begin() + at, has_.end(), false);
  }
  /// Computes KV for the first `end` tokens, gap by gap; returns the logits after the last computed one.
  token compute(std::uint32_t end, std::uint64_t evicted_count) {
    token said = 0;
    for (std::uint32_t first = 0; first < end; ++first) {
      if (has_[first]) continue;
      std::uint32_t last = first;
      while (last < end && !has_[last] && last - first < 60) has_[last++] = true;
      EXPECT_TRUE(table_.insert(pool_, first, last - first));
      const auto pieces = table_.prefix(last);
      const model::run one{.tokens = std::span(log_).subspan(first, last - first),
                           .first_position = static_cast<position>(first),
                           .table = pieces,
                           .logits_begin = last - first - 1};
      const auto logits = model_->forward({&one, 1});
      said = test::sample(logits, sampling_, {log_, log_.size() + evicted_count, 0});
      first = last - 1;
    }
    return said;
  }

  std::unique_ptr<model::transformer> model_ = shared_weights().make(40);
  kv::page_pool pool_{40};
  sampling::sampling_params sampling_;
  kv::page_table table_;
  std::vector<token> log_;
  std::vector<bool> has_;
};

}  // namespace redline::test
