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
/// for one sequence. The pool has room for whatever is asked; model and pool outlive the log.
class cached_log {
 public:
  cached_log(model::transformer& model, kv::page_pool& pool) : model_(model), pool_(pool) {}
  ~cached_log() { table_.clear(pool_); }
  cached_log(const cached_log&) = delete;
  cached_log& operator=(const cached_log&) = delete;

  /// The log is now `log`, by way of the splices; KV after the first token that differs then is dropped.
  void become(std::span<const scheduler::log_splice> splices, std::vector<token> log);
  /// Computes KV for all but the last token.
  void prepare();
  /// The same for the last token; returns the logits of what follows it.
  std::span<const float> read_last();
  /// Logits of what follows the last token and then each token of `next` but its last. The log is unchanged after it.
  std::vector<float> read_ahead(std::span<const token> next);
  /// Decodes `count` tokens greedily, fewer when `stop` is true of one. The log is unchanged after it.
  template<class Stop>
  std::vector<token> say(std::uint32_t count, const Stop& stop);

  /// Gives all tokens KV of no meaning, for measuring times.
  void pretend();
  /// The token's key in every head of a layer, turned to where it counts as standing.
  std::vector<float> key_of(std::uint32_t index, std::uint32_t layer);

  /// Tokens computed so far.
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

/// The first of the most probable.
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
