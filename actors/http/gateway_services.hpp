#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "actors/editing/edit_memory.hpp"
#include "actors/editing/prompt_builder.hpp"
#include "actors/http/api_keys.hpp"
#include "actors/http/browser_guard.hpp"
#include "actors/http/gateway_probe.hpp"
#include "actors/messages/edit_messages.hpp"
#include "actors/serving/answer_factory.hpp"
#include "runtime/actor/thread_pool.hpp"

namespace redline::actors {

/// What the gateway serves and which actors it works with.
struct gateway_services {
  std::shared_ptr<const answer_factory> answers;
  std::shared_ptr<const prompt_builder> prompts;
  std::string model_name;
  std::vector<std::string> aliases;
  bool accept_any_model = false;
  std::string fingerprint;              // build and model, for system_fingerprint
  draft::draft_options draft_defaults;  // for requests that name no method
  kv::eviction_options eviction_defaults;
  actor::actor_ref<verify_scheduler> scheduler;  // reports its state; nothing is served while it cannot be reached
  actor::address http;
  api_keys keys;
  browser_guard guard;                // asked while there are no keys
  std::uint32_t sessions_max = 1024;  // answers in progress
  edit_limits editing;
  std::shared_ptr<edit_memory> edit_bytes = std::make_shared<edit_memory>();
  std::shared_ptr<gateway_probe> probe = std::make_shared<gateway_probe>();
  std::shared_ptr<actor::thread_pool> pool;  // reads requests; null: they are read on the gateway's own thread
  std::function<void()> on_drained;          // called once, when the last request of a drain is over

  [[nodiscard]] bool serves_model(const std::string& name) const {
    return accept_any_model || name.empty() || name == model_name ||
           std::find(aliases.begin(), aliases.end(), name) != aliases.end();
  }
};

}  // namespace redline::actors
