#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "actors/editing/edit_memory.hpp"
#include "actors/http/fields/api_error.hpp"
#include "actors/http/metrics/gateway_probe.hpp"
#include "actors/http/routing/browser_guard.hpp"
#include "actors/http/routing/cross_origin.hpp"
#include "actors/http/routing/key_ring.hpp"
#include "actors/messages/edit_messages.hpp"
#include "actors/pool/model_shelf.hpp"
#include "runtime/actor/thread_pool.hpp"
#include "runtime/base/byte_budget.hpp"
#include "runtime/base/size_limits.hpp"
#include "runtime/trace/tracer.hpp"

namespace redline::actors {

/// What the gateway serves, and the actors it works with.
struct gateway_services {
  std::shared_ptr<model_shelf> models = std::make_shared<model_shelf>();
  bool accept_any_model = false;  // an unknown model name means the first model
  kv::eviction_options eviction_defaults;
  actor::actor_ref<cache_manager> manager;  // reports its state; nothing is served while it is unreachable
  actor::actor_ref<actors::placer> placer;  // finds cache managers in a pool; null without a pool
  std::uint64_t model = 0;                  // digest of the model file, for the placer
  actor::address http;
  /// May change while the server runs, but never between having keys and having none.
  std::shared_ptr<key_ring> keys = std::make_shared<key_ring>();
  bool shows_studio = false;          // whether it serves the page at /
  bool speaks_vllm = false;           // whether it serves vLLM's metrics and some of its endpoints
  browser_guard guard;                // consulted only if there are no keys
  cross_origin pages;                 // external pages that may use the server
  bool metrics_are_open = false;      // whether metrics need no key
  std::uint32_t sessions_max = 1024;  // limit of answers in progress
  std::uint32_t running_max = 1024;   // answers computed in turn; further ones wait
  byte_budget::limits request_limits{sizes::request_memory_bytes_max, sizes::request_memory_bytes_max};
  std::shared_ptr<byte_budget> request_bytes = std::make_shared<byte_budget>();  // what requests in progress reserve
  std::uint64_t answer_bytes_max = sizes::http_answer_bytes_max;  // limit of an answer that is not streamed
  edit_limits editing;
  std::shared_ptr<edit_memory> edit_bytes = std::make_shared<edit_memory>();
  std::shared_ptr<gateway_probe> probe = std::make_shared<gateway_probe>();
  std::shared_ptr<trace::tracer> tracer;     // null if nothing is traced
  std::shared_ptr<actor::thread_pool> pool;  // reads requests; null means on the gateway's thread
  std::function<void()> on_ready;            // called once, when requests can be served for the first time
  std::function<void()> on_drained;          // called once, when the last request of a drain has ended

  [[nodiscard]] bool wants_key() const { return !keys->snapshot()->empty(); }
  /// Reserves so many bytes in `held`. Returns the error if they are not available.
  [[nodiscard]] std::optional<api::api_error> hold(byte_budget::claim& held, std::uint64_t bytes) const;
  /// The model that a request names, or the first one if the name is empty. Callable on any thread.
  [[nodiscard]] api::checked<std::shared_ptr<const served_model>> find_model(const std::string& name) const;
};

}  // namespace redline::actors
