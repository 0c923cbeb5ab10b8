#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "actors/serving/cache_manager.hpp"
#include "actors/serving/draft_model.hpp"
#include "actors/serving/target_model.hpp"
#include "tests/support/actor_world.hpp"

// The actors of a serving process in an actor_world, for a test's sessions.

namespace redline::test {

inline constexpr auto manager_where = actor::make_address(2, 1, 4);
inline constexpr auto target_where = actor::make_address(2, 3, 5);

inline constexpr actor::mailbox_limits roomy{4096, 4096};

/// Adds cache manager and target model. `size` is the size of the memory; `make` is called at each start of the model.
inline void add_target(actor_world& world, const actors::scheduler_options& options, kv::pool_size size,
                       std::function<std::unique_ptr<model::transformer>()> make,
                       std::shared_ptr<const grammar::token_trie> tokenizer = nullptr) {
  const std::uint32_t pages_count = size.pages;
  world.add_worker(2, 1).add<actors::cache_manager>(4, "cache manager", roomy, [=](actor::actor_context& c) {
    return std::make_unique<actors::cache_manager>(c, options, size,
                                                   actor::actor_ref<actors::target_model>{target_where});
  });
  world.add_worker(2, 3).add<actors::target_model>(5, "target model", roomy, [=](actor::actor_context& c) {
    return std::make_unique<actors::target_model>(c, make(), pages_count,
                                                  actor::actor_ref<actors::cache_manager>{manager_where},
                                                  std::vector<actors::pass_cost>{}, nullptr, tokenizer);
  });
}

}  // namespace redline::test
