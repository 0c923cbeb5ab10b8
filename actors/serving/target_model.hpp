#pragma once

#include <memory>
#include <span>
#include <vector>

#include "actors/messages/target_messages.hpp"
#include "runtime/actor/worker.hpp"
#include "runtime/grammar/grammar_matcher.hpp"
#include "runtime/model/transformer.hpp"
#include "runtime/sampling/acceptance.hpp"
#include "runtime/sampling/token_chooser.hpp"

namespace redline::actors {

class cache_manager;

/// What the cost of passes depends on.
[[nodiscard]] cost::mixture_shape mixture_of(const architecture::model_shape& config);

/// Runs verification passes of the target model and accepts drafts on the spot, so that logits never travel. Owns the
/// KV storage, but does not decide what is stored where: that comes with every batch and is checked before it is used.
class target_model final : public actor::actor_of<target_model> {
 public:
  using accepts = actor::protocol<forward_batch, announce_target>;

  /// costs: sent to every cache manager that asks; empty when nothing was measured. trie: for sequences with a grammar,
  /// which are refused without it. automata: their grammars, which the cache manager compiles before a pass needs them.
  target_model(actor::actor_context& context, std::unique_ptr<model::transformer> transformer,
               std::uint32_t pages_count, actor::actor_ref<cache_manager> manager, std::vector<pass_cost> costs = {},
               std::shared_ptr<sampling::token_chooser> chooser = nullptr,
               std::shared_ptr<const grammar::token_trie> trie = nullptr,
               std::shared_ptr<grammar::automaton_store> automata = std::make_shared<grammar::automaton_store>());

  void on_start();
  void on(const forward_batch& m);
  void on(const announce_target& m);

 private:
  /// For each run; null if it has none, or one whose name is unknown.
  using batch_grammars = std::vector<std::shared_ptr<grammar::grammar_cache::entry>>;

  [[nodiscard]] result<void> check(const forward_batch& m) const;
  [[nodiscard]] result<void> check_moves(const forward_batch& m) const;
  [[nodiscard]] result<void> check_tokens(const forward_batch& m, const batch_run& run) const;
  [[nodiscard]] result<void> check_memory(const forward_batch& m, const batch_run& run) const;
  [[nodiscard]] result<batch_grammars> find_grammars(const forward_batch& m);
  [[nodiscard]] std::vector<sampling::acceptance> judge(const forward_batch& m, const batch_grammars& grammars,
                                                        std::span<const model::run> batch);

  void draft(const forward_batch& m, std::span<const model::run> batch, batch_done& done);

  std::unique_ptr<model::transformer> transformer_;
  std::uint32_t pages_count_;
  actor::actor_ref<cache_manager> manager_;
  std::vector<pass_cost> costs_;
  grammar::grammar_cache grammars_;
  std::shared_ptr<sampling::token_chooser> chooser_;  // null except in benchmarks
  std::uint64_t start_id_;                            // sent with target_ready: identifies this actor's KV
};

}  // namespace redline::actors

extern template class redline::actor::actor_cell<redline::actors::target_model>;
