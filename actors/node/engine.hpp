#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "actors/node/memory_plan.hpp"
#include "actors/serving/cache_manager.hpp"
#include "actors/serving/placer.hpp"
#include "actors/serving/session.hpp"
#include "kernels/dispatch.hpp"
#include "kernels/worker_team.hpp"
#include "runtime/actor/thread_pool.hpp"
#include "runtime/actor/worker.hpp"
#include "runtime/kv/prefix_index.hpp"
#include "runtime/model/numerics.hpp"
#include "runtime/model/transformer.hpp"
#include "runtime/sampling/token_chooser.hpp"
#include "runtime/text/tokenizer.hpp"
#include "transport/otlp_exporter.hpp"
#include "transport/zmq/zmq_bridge.hpp"
#include "transport/zmq/zmq_broker.hpp"
#include "transport/zmq/zmq_fabric.hpp"
#include "transport/zmq/zmq_publisher.hpp"

namespace redline::actors {

/// Which worker each actor of a process lives in. The numbers are parts of addresses and the same in every process of
/// one version, so that actors of one process can name those of another.
namespace topology {
inline constexpr std::uint16_t io_worker = 1;      // many small actors
inline constexpr std::uint16_t http_worker = 2;    // the HTTP front's event loop
inline constexpr std::uint16_t target_worker = 3;  // each has one model and its compute threads
inline constexpr std::uint16_t draft_worker = 4;
inline constexpr std::uint16_t first_pool_worker = 16;  // and those after it: threads that read requests

inline constexpr std::uint32_t supervisor = 1;
inline constexpr std::uint32_t gateway = 2;
inline constexpr std::uint32_t manager = 4;
inline constexpr std::uint32_t target = 5;
inline constexpr std::uint32_t drafter = 6;
inline constexpr std::uint32_t http = 8;
inline constexpr std::uint32_t client = 9;
inline constexpr std::uint32_t header = 10;
inline constexpr std::uint32_t placer = 11;
inline constexpr std::uint32_t models = 12;  // a gateway's model fetcher, which its owner adds
}  // namespace topology

/// Which actors this process runs. One process runs all; in a pool, sessions are placed with the workers that exist.
struct engine_roles {
  bool front = true;
  bool target = true;
  bool draft = true;
};

struct engine_options {
  engine_roles roles;
  std::string target_path;  // for a gateway, what its workers must have; any if empty
  std::string model_name;   // name for clients, which may also use the aliases
  std::vector<std::string> aliases;
  std::string label;                         // name that people know this process by; "host:pid" if empty
  std::optional<std::string> chat_template;  // replaces the target file's
  std::string draft_path;                    // no draft model if empty
  std::uint32_t draft_context = 0;           // tokens that it looks at; 0 means as many as it was trained for
  model::numerics numerics = model::numerics::automatic;
  model::kv_type kv = model::kv_type::f16;
  std::uint32_t threads = 0;         // compute threads per model; 0 means all that this process may use
  std::uint32_t context_max = 0;     // 0 means the model's, or the KV pool's size if that is less
  std::uint64_t kv_bytes_max = 0;    // per model; 0 means a quarter of what the process may use
  scheduler_options scheduling;      // limits.tokens_max is filled in here
  bool whole_drafts = false;         // drafts are verified whole, even where that does not pay
  microseconds measuring_max{0};     // for timing passes at start; 0 lets the cache manager learn instead
  std::string cost_folder;           // where times are stored for the next start; if empty, nowhere
  session_partners patience;         // only its durations are used
  transport::bridge_options bridge;  // if it has joins, this process is part of a pool
  std::optional<transport::broker_options> broker;           // the broker in this process, which others join
  microseconds pool_patience{20'000'000};                    // how long sessions wait for a worker
  std::optional<transport::publisher_options> cache_events;  // publishes cache events for third-party routers
  std::optional<transport::otlp_options> traces;             // exports what this process does for traced requests
  double trace_ratio = 1;                                    // share of the traces that begin here and are recorded
  std::shared_ptr<sampling::token_chooser> target_chooser;   // null except in benchmarks
  std::shared_ptr<const sampling::token_chooser> draft_chooser;
  actor::activity_listener activities;  // empty except in benchmarks; called on several threads
  bool shows_memory = true;             // logs the memory plan
  /// Reports a weight loader's progress: what, bytes done, bytes in all.
  std::function<void(const std::string&, std::uint64_t, std::uint64_t)> progress;
  /// Called from an actor's thread when the supervisor gives up.
  std::function<void(const std::string&)> on_fatal;
};

/// The actors of one process, with the threads and the transport under them: the composition of the system.
///
///   io worker      supervisor, gateway, sessions, cache manager
///   target, draft  one actor each on a thread of its own; models bring their compute threads
class engine {
 public:
  /// Opens and checks the files and makes the workers; loads no weights yet.
  static result<std::unique_ptr<engine>> create(engine_options options);
  ~engine();
  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;

  /// Starts the io worker, then loads the models and starts theirs. Returns when all of this process's actors run.
  result<void> start();
  /// Stops the workers, models last. Safe to call twice.
  void stop();

  /// The io worker, to which the caller adds its own actors before `start` (gateway, command-line client).
  [[nodiscard]] actor::worker& io() { return *io_->core; }
  [[nodiscard]] transport::zmq_fabric& fabric() { return fabric_; }
  /// The front's threads that read requests. They end with `stop`.
  [[nodiscard]] const std::shared_ptr<actor::thread_pool>& pool() const { return pool_; }

  /// Whether the actors of the io thread have answered within `limit`. Call it repeatedly: each call asks them again.
  [[nodiscard]] bool is_responsive(std::chrono::milliseconds limit);
  /// Called on a worker: tells the gateways to move their answers elsewhere.
  void begin_hand_over();
  /// Whether they have, so that no session asks the cache manager for anything. Call it repeatedly, as above.
  [[nodiscard]] bool is_handed_over();

  /// Sends to an actor from the thread that owns this engine.
  template<actor::message M>
  void send(actor::address to, const M& m) {
    (void)control_->send(actor::frame{actor::envelope{.to = to, .id = M::id}, actor::encode(m)});
  }

  /// A session's cache manager, and its drafter if `how` asks one. Fails if `how` needs a draft model that is missing.
  [[nodiscard]] result<session_partners> partners_for(draft::method how, actor::address client) const;
  /// The same in a pool, for the model with this digest.
  [[nodiscard]] session_partners partners_in_pool(draft::method how, actor::address client, std::uint64_t model) const;
  [[nodiscard]] actor::actor_ref<cache_manager> manager_ref() const;
  /// The placer where sessions are placed, since target or draft model may be in other processes; else null.
  [[nodiscard]] actor::actor_ref<placer> placer_ref() const;
  /// The actor that answers `report_status`: the placer for its pool, or the cache manager.
  [[nodiscard]] actor::address status_source() const;
  /// The draft model of this process; null without --draft.
  [[nodiscard]] actor::actor_ref<draft_model> drafter_ref() const;

  /// The digest of the target model's file; 0 without one.
  [[nodiscard]] std::uint64_t model_digest() const;
  /// The target model's file; null without one.
  [[nodiscard]] const std::shared_ptr<const gguf::gguf_file>& target_file() const { return target_file_; }
  [[nodiscard]] const std::shared_ptr<const text::tokenizer>& tokenizer() const { return tokenizer_; }
  /// The token trie for grammars; null where the vocabulary does not allow one.
  [[nodiscard]] const std::shared_ptr<const grammar::token_trie>& token_trie() const { return token_trie_; }
  [[nodiscard]] const std::shared_ptr<grammar::automaton_store>& automata() const { return automata_; }
  /// The most tokens in a sequence: the model's context, or less by options or where the KV pool is smaller.
  [[nodiscard]] std::uint32_t context_max() const { return context_max_; }
  [[nodiscard]] const engine_options& options() const { return options_; }
  /// Null if nothing is traced.
  [[nodiscard]] const std::shared_ptr<trace::tracer>& tracer() const { return options_.scheduling.tracer; }
  /// What decides the bits of the target model's answers: kernels and KV type. Empty if another process runs it.
  [[nodiscard]] std::string numerics() const;

 private:
  struct hosted_worker {
    std::unique_ptr<actor::link> wire;
    std::unique_ptr<actor::worker> core;
    std::thread thread;
  };

  explicit engine(engine_options options);
  result<void> open_files();
  result<void> choose_tables();
  result<void> plan_memory() const;
  void start_exporter();
  std::unique_ptr<hosted_worker> make_worker(std::uint16_t number);
  void choose_target_pool();
  void add_pool();
  [[nodiscard]] std::function<void(const std::vector<kv::prefix_change>&)> cache_listener() const;
  void add_io_actors();
  result<void> add_target();
  [[nodiscard]] std::vector<pass_cost> pass_costs(model::transformer& t, const kernels::kernel_table& table,
                                                  model::kv_type kv, const std::string& path,
                                                  const gguf::gguf_file& file) const;
  result<void> add_draft();
  [[nodiscard]] process_card describe_itself() const;
  [[nodiscard]] bool is_in_pool() const { return options_.broker || !options_.bridge.joins.empty(); }
  static void run(hosted_worker& t, const std::string& name);
  void stop_one(std::unique_ptr<hosted_worker>& t);
  void ask_status();
  [[nodiscard]] pool_request pool_request_for(const architecture::model_shape& config) const;
  [[nodiscard]] std::uint32_t draft_pages() const;

  engine_options options_;
  transport::zmq_fabric fabric_;
  const kernels::kernel_table* target_table_ = nullptr;
  const kernels::kernel_table* draft_table_ = nullptr;
  std::shared_ptr<const gguf::gguf_file> target_file_;
  std::shared_ptr<const gguf::gguf_file> draft_file_;
  architecture::model_shape target_config_;
  kv::pool_size target_pool_{0};
  architecture::model_shape draft_config_;
  std::shared_ptr<const text::tokenizer> tokenizer_;
  std::shared_ptr<const grammar::token_trie> token_trie_;
  const std::shared_ptr<grammar::automaton_store> automata_ = std::make_shared<grammar::automaton_store>();
  std::uint32_t context_max_ = 0;
  const std::int64_t started_unix_ms_ =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();
  mutable std::optional<std::uint64_t> model_digest_;
  std::shared_ptr<const std::string> header_;  // header of the target's file, for gateways elsewhere
  std::unique_ptr<kernels::worker_team> target_team_;
  std::unique_ptr<kernels::worker_team> draft_team_;
  std::shared_ptr<transport::zmq_publisher> cache_events_;
  std::unique_ptr<transport::otlp_exporter> exporter_;
  std::unique_ptr<actor::link> control_;  // this object's own link, for stop_worker and status requests
  std::shared_ptr<actor::thread_pool> pool_;
  std::shared_ptr<per_tenant<draft::tenant_record>> learned_ =
      std::make_shared<per_tenant<draft::tenant_record>>(tenants_learned_max);
  std::unique_ptr<hosted_worker> io_;
  std::unique_ptr<hosted_worker> target_;
  std::unique_ptr<hosted_worker> draft_;
  static constexpr std::size_t tenants_learned_max = 1024;  // per gateway, unless more have answers in progress
  bool stopped_ = false;
  std::chrono::steady_clock::time_point answered_at_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point told_at_;  // when the gateways were told to go elsewhere
};

}  // namespace redline::actors
