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

/// What the gateway serves and which actors it works with.
struct gateway_services {
  std::shared_ptr<model_shelf> models = std::make_shared<model_shelf>();
  bool accept_any_model = false;  // a name that no model has stands for the first one
  kv::eviction_options eviction_defaults;
  actor::actor_ref<cache_manager> manager;  // reports its state; nothing is served while it cannot be reached
  actor::actor_ref<actors::placer> placer;  // of a pool: finds cache managers; else nobody
  std::uint64_t model = 0;                  // digest of its file, for the placer
  actor::address http;
  /// Whether there are any never changes.
  std::shared_ptr<key_ring> keys = std::make_shared<key_ring>();
  bool shows_studio = false;          // the page at /
  bool speaks_vllm = false;           // to routers made for vLLM: its metrics and some of its endpoints
  browser_guard guard;                // asked while there are no keys
  cross_origin pages;                 // of elsewhere that may use the server
  bool metrics_are_open = false;      // need no key
  std::uint32_t sessions_max = 1024;  // answers in progress
  std::uint32_t running_max = 1024;   // of these are computed in turn; the others wait
  byte_budget::limits request_limits{sizes::request_memory_bytes_max, sizes::request_memory_bytes_max};
  std::shared_ptr<byte_budget> request_bytes = std::make_shared<byte_budget>();  // what requests in work hold
  std::uint64_t answer_bytes_max = sizes::http_answer_bytes_max;                 // of one that is not streamed
  edit_limits editing;
  std::shared_ptr<edit_memory> edit_bytes = std::make_shared<edit_memory>();
  std::shared_ptr<gateway_probe> probe = std::make_shared<gateway_probe>();
  std::shared_ptr<trace::tracer> tracer;     // null: nothing is traced
  std::shared_ptr<actor::thread_pool> pool;  // reads requests; null: they are read on the gateway's own thread
  std::function<void()> on_ready;            // called once, when requests can be served for the first time
  std::function<void()> on_drained;          // the same, when the last request of a drain is over

  [[nodiscard]] bool wants_key() const { return !keys->snapshot()->empty(); }
  /// Why a request may not come to hold so many bytes; nullopt: `held` has them.
  [[nodiscard]] std::optional<api::api_error> hold(byte_budget::claim& held, std::uint64_t bytes) const;
  /// The model that a request names; without a name the first one. On any thread.
  [[nodiscard]] api::checked<std::shared_ptr<const served_model>> find_model(const std::string& name) const;
};

}  // namespace redline::actors
