#pragma once

#include <span>
#include <vector>

#include "actors/messages/verify_messages.hpp"
#include "bench/studies/common/names.hpp"
#include "runtime/kv/page_pool.hpp"
#include "runtime/model/transformer.hpp"
#include "scheduler/coverage.hpp"

namespace redline::studies {

/// A log and its KV in a model of this process, for measuring what edits do to it: scheduler and cache manager in one,
/// for one sequence. The pool has space for every request; model and pool outlive the log.
class cached_log {
 public:
  cached_log(model::transformer& model, kv::page_pool& pool) : model_(model), pool_(pool) {}
  ~cached_log() { table_.clear(pool_); }
  cached_log(const cached_log&) = delete;
  cached_log& operator=(const cached_log&) = delete;

  /// Applies the splices and makes `log` the log; KV after the first token that then still differs is dropped.
  void become(std::span<const scheduler::log_splice> splices, std::vector<token> log);
  /// Computes KV for all but the last token.
  void prepare();
  /// Computes KV for the last token and returns the logits of what follows it.
  std::span<const float> read_last();
  /// Returns the logits after the last token and then after each token of `next` but its last. The log stays unchanged.
  std::vector<float> read_ahead(std::span<const token> next);
  /// Decodes `count` tokens greedily, or fewer when `stop` is true of one. The log stays unchanged.
  template<class Stop>
  std::vector<token> say(std::uint32_t count, const Stop& stop);

  /// Gives all tokens meaningless KV, for measuring times.
  void pretend();
  /// Returns the token's key in every head of a layer, rotated to the position at which it counts.
  std::vector<float> key_of(std::uint32_t index, std::uint32_t layer);

  /// The number of tokens computed so far.
  [[nodiscard]] std::uint64_t computed_count() const { return computed_; }
  [[nodiscard]] const std::vector<token>& log() const { return log_; }
  [[nodiscard]] const kv::page_table& table() const { return table_; }

 private:
  std::span<const float> compute(std::uint32_t end, std::uint32_t logits_count);
  void keep(std::uint32_t count);
  void splice(const scheduler::log_splice& s);

  model::transformer& model_;
  kv::page_pool& pool_;
  std::vector<token> log_;
  scheduler::coverage kv_;
  kv::page_table table_;
  std::uint64_t computed_ = 0;
};

/// The most probable token; the first one of a tie.
[[nodiscard]] token most_probable(std::span<const float> logits);

template<class Stop>
std::vector<token> cached_log::say(std::uint32_t count, const Stop& stop) {
  const auto before = static_cast<std::uint32_t>(log_.size());
  std::vector<token> said;
  while (said.size() < count) {
    said.push_back(most_probable(read_last()));
    log_.push_back(said.back());
    if (stop(said.back())) break;
  }
  log_.resize(before);
  keep(before);
  return said;
}

}  // namespace redline::studies
