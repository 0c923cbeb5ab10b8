#include "actors/node/engine.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <stdexcept>

#include "actors/node/cache_events.hpp"
#include "actors/node/cost_cache.hpp"
#include "actors/node/memory_plan.hpp"
#include "actors/node/pool_rules.hpp"
#include "actors/node/supervisor.hpp"
#include "actors/pool/header_server.hpp"
#include "actors/serving/cache_manager.hpp"
#include "actors/serving/draft_model.hpp"
#include "actors/serving/target_model.hpp"
#include "kernels/machine/cpu_features.hpp"
#include "kernels/machine/machine_memory.hpp"
#include "runtime/base/hex.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/version.hpp"
#include "runtime/gguf/file_digest.hpp"
#include "runtime/model/pass_probe.hpp"

namespace redline::actors {

using actor::actor_ref;
using actor::make_address;

namespace {

constexpr std::uint16_t control_worker = 99;
constexpr std::size_t actor_mail_max = 8192;
// As many answers as run at once by default share one pass, even on a slow machine: two passes would take longer.
constexpr std::uint32_t untimed_decodes = 64;
constexpr auto hand_over_min = std::chrono::milliseconds(500);
constexpr std::uint64_t logits_bytes_max = 256u << 20;
constexpr std::uint64_t logits_rows_min = 64;
// Limit of one message about the cache, some 80 kB.
constexpr std::size_t cache_changes_max = 512;
constexpr std::uint32_t draft_rows_max = 512;
// Attention takes most of a draft pass. Integers of one byte make that 1.2 to 1.4 times as fast, and a draft decides no
// byte of an answer.
constexpr model::kv_type draft_kv = model::kv_type::q8_0;

/// A pass with more logits would not be faster, and with a vocabulary of 150,000 each row takes 600 kB.
std::uint32_t logits_rows_of(const architecture::model_shape& config, std::uint32_t rows_max) {
  const std::uint64_t row_bytes = std::uint64_t{config.vocabulary} * sizeof(float);
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(rows_max, std::max<std::uint64_t>(logits_rows_min, logits_bytes_max / row_bytes)));
}

/// Draws a number for a process that others may meet; alone, the number does not matter.
actor::process_number draw_process_number(const engine_options& options) {
  if (!options.broker && options.bridge.joins.empty()) return 1;
  return 1 + static_cast<actor::process_number>(real_environment().random() % actor::process_number_max);
}

std::string read_host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

// Threads for small inputs, and as many for large ones. Reading requests takes little of the time of answering them.
/// Whether a process with these roles has a pool of threads: gateways read requests there, and cache managers compile
/// grammars.
bool has_pool(const engine_roles& roles) { return roles.front || roles.target; }
unsigned pool_threads() { return std::clamp(kernels::usable_cpus() / 8, 1U, 4U); }

transport::fabric_layout plan_fabric(const engine_options& options) {
  transport::fabric_layout layout{.workers = {control_worker, topology::io_worker}};
  if (options.roles.front) {
    layout.workers.push_back(topology::http_worker);
  }
  for (unsigned i = 0; has_pool(options.roles) && i < 2 * pool_threads(); ++i)
    layout.workers.push_back(static_cast<std::uint16_t>(topology::first_pool_worker + i));
  if (options.roles.target) layout.workers.push_back(topology::target_worker);
  if (options.roles.draft && !options.draft_path.empty()) layout.workers.push_back(topology::draft_worker);
  layout.has_bridge = options.broker || !options.bridge.joins.empty();
  return layout;
}

// Handlers on the io thread should take a few milliseconds; a busy machine may stretch that.
constexpr microseconds io_handler_max{50'000};

}  // namespace

engine::engine(engine_options options)
    : options_(std::move(options)), fabric_(draw_process_number(options_), plan_fabric(options_)) {}

engine::~engine() { stop(); }

result<std::unique_ptr<engine>> engine::create(engine_options options) {
  std::unique_ptr<engine> e(new engine(std::move(options)));
  REDLINE_TRY(e->open_files());
  REDLINE_TRY(e->choose_tables());
  REDLINE_TRY(e->plan_memory());
  e->start_exporter();
  e->control_ = e->fabric_.make_link(control_worker);
  e->io_ = e->make_worker(topology::io_worker);
  e->io_->core->warn_about_handlers_over(io_handler_max);
  if (has_pool(e->options_.roles)) e->add_pool();
  if (e->options_.cache_events) {
    REDLINE_TRY_ASSIGN(e->cache_events_, transport::zmq_publisher::start(*e->options_.cache_events));
  }
  e->add_io_actors();
  return e;
}

void engine::start_exporter() {
  if (!options_.traces) return;
  auto& how = *options_.traces;
  how.resource.emplace_back("service.version", build_version());
  how.resource.emplace_back("service.instance.id", to_hex(real_environment().random()));
  how.resource.emplace_back("host.name", read_host_name());
  how.resource.emplace_back("process.pid", std::int64_t{::getpid()});
  if (options_.roles.target) how.resource.emplace_back("redline.numerics", numerics());
  options_.scheduling.tracer = std::make_shared<trace::tracer>(trace::tracer::queue_spans_max, options_.trace_ratio);
  exporter_ = std::make_unique<transport::otlp_exporter>(options_.scheduling.tracer, how);
}

result<void> engine::open_files() {
  const auto& roles = options_.roles;
  if ((roles.front || roles.target) && !options_.target_path.empty()) {
    REDLINE_TRY_ASSIGN(target_file_, gguf::gguf_file::open(options_.target_path));
    REDLINE_TRY_ASSIGN(target_config_, architecture::read_shape(*target_file_));
    REDLINE_TRY_ASSIGN(tokenizer_, text::tokenizer::from_file(*target_file_));
    if (auto index = grammar::token_trie::make(tokenizer_)) token_trie_ = std::move(*index);
    context_max_ =
        options_.context_max == 0 ? target_config_.context : std::min(options_.context_max, target_config_.context);
  }
  if (roles.target) choose_target_pool();
  if (options_.draft_path.empty()) return {};
  REDLINE_TRY_ASSIGN(draft_file_, gguf::gguf_file::open(options_.draft_path));
  REDLINE_TRY_ASSIGN(draft_config_, architecture::read_shape(*draft_file_));
  if (options_.draft_context != 0) draft_config_.context = std::min(draft_config_.context, options_.draft_context);
  REDLINE_TRY_ASSIGN(const auto draft_tokenizer, text::tokenizer::from_file(*draft_file_));
  if (tokenizer_ && draft_tokenizer->digest() != tokenizer_->digest()) {
    return failure{errc::unsupported_format, options_.draft_path + ": expected the vocabulary of " +
                                                 options_.target_path +
                                                 ", found another; use models of one vocabulary"};
  }
  if (!tokenizer_) tokenizer_ = draft_tokenizer;
  return {};
}

result<void> engine::choose_tables() {
  const auto& choice = kernels::process_table();
  if (choice.table == nullptr) return failure{errc::unsupported_format, choice.problem};
  if (options_.roles.target && target_file_) {
    REDLINE_TRY_ASSIGN(target_table_, model::table_for(*target_file_, *choice.table, options_.numerics, options_.kv));
  }
  // Drafts decide no byte of an answer, so a draft model that lacks the requested numerics uses the automatic ones.
  if (options_.roles.draft && draft_file_) {
    const auto asked = model::table_for(*draft_file_, *choice.table, options_.numerics, draft_kv);
    REDLINE_TRY_ASSIGN(const auto* usual,
                       model::table_for(*draft_file_, *choice.table, model::numerics::automatic, draft_kv));
    draft_table_ = asked ? *asked : usual;
  }
  return {};
}

result<void> engine::plan_memory() const {
  memory_plan plan{.limit_bytes = kernels::read_machine_memory().limit_bytes()};
  const auto add = [&](const gguf::gguf_file& file, const kernels::kernel_table& table,
                       const architecture::model_shape& config, model::kv_type kv, kv::pool_size pages,
                       std::uint32_t rows, std::uint32_t logits_rows) {
    plan.weights_bytes += model::weight_bytes(file, table);
    plan.kv_bytes += model::storage_bytes(config, kv, pages);
    plan.buffers_bytes += model::buffer_bytes(config, rows, logits_rows);
  };
  if (options_.roles.target && target_file_) {
    const std::uint32_t rows = options_.scheduling.budget.rows_max;
    add(*target_file_, *target_table_, target_config_, options_.kv, target_pool_, rows,
        logits_rows_of(target_config_, rows));
  }
  if (options_.roles.draft && draft_file_) {
    add(*draft_file_, *draft_table_, draft_config_, draft_kv, draft_pages(), draft_rows_max, draft_rows_max);
  }
  if (plan.weights_bytes == 0) return {};
  if (options_.shows_memory) log_line(log_level::info, "engine", "memory: " + plan.describe());
  return plan.check(target_file_ ? options_.target_path : options_.draft_path);
}

std::unique_ptr<engine::hosted_worker> engine::make_worker(std::uint16_t number) {
  auto t = std::make_unique<hosted_worker>();
  t->wire = fabric_.make_link(number);
  t->core = std::make_unique<actor::worker>(fabric_.process(), number, *t->wire, real_environment());
  t->core->report_deaths_to(make_address(fabric_.process(), topology::io_worker, topology::supervisor));
  t->core->report_activities_to(options_.activities);
  return t;
}

actor_ref<cache_manager> engine::manager_ref() const {
  return {make_address(fabric_.process(), topology::io_worker, topology::manager)};
}

actor_ref<placer> engine::placer_ref() const {
  if (!options_.roles.front || !is_in_pool()) return {};
  return {make_address(fabric_.process(), topology::io_worker, topology::placer)};
}

actor::address engine::status_source() const { return placer_ref() ? placer_ref().where : manager_ref().where; }

actor_ref<draft_model> engine::drafter_ref() const {
  if (options_.draft_path.empty()) return {};
  return {make_address(fabric_.process(), topology::draft_worker, topology::drafter)};
}

session_partners engine::partners_in_pool(draft::method how, actor::address client, std::uint64_t model) const {
  session_partners partners = options_.patience;
  partners.client = client;
  partners.placer = placer_ref();
  partners.place_patience = options_.pool_patience;
  partners.silence_max = std::max(partners.silence_max, 2 * options_.pool_patience);  // the placer gives up first
  partners.place = {.model = model, .wants_draft = draft::asks_model(how)};
  partners.learned = learned_;
  return partners;
}

result<session_partners> engine::partners_for(draft::method how, actor::address client) const {
  if (placer_ref()) return partners_in_pool(how, client, model_digest());
  session_partners partners = options_.patience;
  partners.manager = manager_ref();
  partners.client = client;
  partners.pool = pool_;
  partners.learned = learned_;
  if (draft::asks_model(how)) partners.drafter = drafter_ref();
  if (!partners.drafter && draft::asks_model(how) && how != draft::method::automatic) {
    return failure{errc::invalid_argument,
                   "this method needs a draft model, and none is loaded; load one with --draft"};
  }
  if (how == draft::method::mtp && !target_config_.has_mtp()) {
    return failure{errc::invalid_argument, "this method needs a model with an MTP layer"};
  }
  return partners;
}

std::uint64_t engine::model_digest() const {
  if (!target_file_) return 0;
  if (!model_digest_) model_digest_ = gguf::compute_file_digest(*target_file_);
  return *model_digest_;
}

pool_request engine::pool_request_for(const architecture::model_shape& config) const {
  const auto& scheduling = options_.scheduling;
  return {.bytes_max =
              options_.kv_bytes_max != 0 ? options_.kv_bytes_max : kernels::read_machine_memory().limit_bytes() / 4,
          .sequences_max = scheduling.limits.running_max,
          .tokens_max = std::min(context_max_ == 0 ? config.context : context_max_, config.context),
          .rows_max = scheduling.budget.prompt_chunk_rows_max};
}

/// All layers of a draft model use full pages, without window pages.
std::uint32_t engine::draft_pages() const {
  architecture::model_shape config = draft_config_;
  config.layer_kinds.clear();
  config.delta.reset();
  config.convolution_taps = 0;
  config.window = 0;
  return choose_pool(config, draft_kv, pool_request_for(draft_config_)).pages;
}

/// A sequence that does not fit into the pool could never end, so the pool's size limits the context.
void engine::choose_target_pool() {
  auto& limits = options_.scheduling.limits;
  target_pool_ = choose_pool(target_config_, options_.kv, pool_request_for(target_config_));
  const std::uint64_t room = std::uint64_t{target_pool_.pages} * kv::page_tokens;
  if (room < context_max_) {
    log_line(log_level::warning, "engine",
             "the KV pool has space for " + std::to_string(room) +
                 " tokens, which limits sequences to that instead of " + std::to_string(context_max_) +
                 "; --kv-mib gives it more memory");
    context_max_ = static_cast<std::uint32_t>(room);
  }
  limits.tokens_max = context_max_;
}

void engine::add_pool() {
  const unsigned threads = pool_threads();
  std::uint16_t number = topology::first_pool_worker;
  pool_ = std::make_shared<actor::thread_pool>(
      actor::thread_pool::options{.small_threads = threads, .large_threads = threads},
      [this, &number] { return fabric_.make_link(number++); });
}

std::function<void(const std::vector<kv::prefix_change>&)> engine::cache_listener() const {
  if (!cache_events_) return {};
  return [to = cache_events_](const std::vector<kv::prefix_change>& changes) {
    const auto now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
    // Messages have a bounded size, so that the queue of a subscriber that does not read is bounded in bytes, too.
    for (std::span rest(changes); !rest.empty(); rest = rest.subspan(std::min(rest.size(), cache_changes_max))) {
      const auto payload = encode_cache_events(rest.first(std::min(rest.size(), cache_changes_max)), now);
      if (!payload.empty()) to->publish(payload);
    }
  };
}

void engine::add_io_actors() {
  actor::worker& io = *io_->core;
  const actor::process_number process = fabric_.process();
  std::vector<actor::restart_policy> groups;
  const actor::restart_limit limit;
  if (options_.roles.target) {
    auto& scheduling = options_.scheduling;
    scheduling.budget.rows_min = std::min(untimed_decodes, scheduling.budget.rows_max);
    scheduling.budget.logits_max = logits_rows_of(target_config_, scheduling.budget.rows_max);
    scheduling.budget.whole_drafts = options_.whole_drafts;
    scheduling.automata = automata_;
    scheduling.pool = pool_;
    if (tokenizer_) scheduling.message_start = tokenizer_->vocab().message_start();
    const actor_ref<target_model> target{make_address(process, topology::target_worker, topology::target)};
    io.add<cache_manager>(
        topology::manager, "cache manager", {actor_mail_max, actor_mail_max},
        [scheduling, size = target_pool_, target, listener = cache_listener()](actor::actor_context& c) {
          return std::make_unique<cache_manager>(c, scheduling, size, target, listener);
        });
    std::vector answering{target.where, manager_ref().where};
    if (is_in_pool() && !options_.roles.front) {
      answering.push_back(make_address(process, topology::io_worker, topology::header));
      header_ = std::make_shared<const std::string>(
          options_.chat_template ? target_file_->copy_header(*options_.chat_template) : target_file_->copy_header());
      io.add<header_server>(
          topology::header, "header server", {actor_mail_max, actor_mail_max},
          [header = header_](actor::actor_context& c) { return std::make_unique<header_server>(c, header); });
    }
    groups.emplace_back(actor::restart_strategy::one_for_one, limit, answering);
  }
  if (placer_ref()) {
    placer_options options{.layout = {.manager_worker = topology::io_worker,
                                      .drafter_worker = topology::draft_worker,
                                      .manager = topology::manager,
                                      .drafter = topology::drafter,
                                      .header_worker = topology::io_worker,
                                      .header = topology::header},
                           .patience = options_.pool_patience};
    const auto card = describe_itself();
    if (card.has_target || card.has_draft) options.own = {process, card};
    if (!target_file_) options.models = make_address(process, topology::io_worker, topology::models);
    if (target_file_) {
      options.why_unfit = [own = own_model{card.model, card.vocabulary}](const process_card& c) {
        return why_unfit(own, c);
      };
    }
    io.add<placer>(topology::placer, "placer", {actor_mail_max, actor_mail_max},
                   [this, options](actor::actor_context& c) {
                     fabric_.tell_peers_again();  // a restarted placer knows no workers
                     return std::make_unique<placer>(c, options);
                   });
    groups.emplace_back(actor::restart_strategy::one_for_one, limit,
                        std::vector{placer_ref().where, make_address(process, topology::io_worker, topology::models)});
  }
  groups.emplace_back(actor::restart_strategy::one_for_one, limit,
                      std::vector{make_address(process, topology::draft_worker, topology::drafter),
                                  make_address(process, topology::io_worker, topology::gateway),
                                  make_address(process, topology::http_worker, topology::http)});
  const auto owner =
      options_.roles.front ? make_address(process, topology::io_worker, topology::gateway) : actor::address{};
  io.add<supervisor>(topology::supervisor, "supervisor", {actor_mail_max, actor_mail_max},
                     [groups, owner, fatal = options_.on_fatal](actor::actor_context& c) {
                       return std::make_unique<supervisor>(
                           c, groups, owner, fatal ? fatal : [](const std::string&) {});
                     });
}

result<void> engine::add_target() {
  const auto report = [this](std::uint64_t done, std::uint64_t all) {
    if (options_.progress) options_.progress(options_.target_path, done, all);
  };
  target_team_ = std::make_unique<kernels::worker_team>(options_.threads);
  REDLINE_TRY_ASSIGN(auto weights,
                     model::load_weights(*target_file_, *target_table_, *target_team_, report, options_.context_max));
  const std::uint32_t pages = target_pool_.pages;
  const model::transformer::options how{.pages_count = pages,
                                        .window_pages_count = target_pool_.window_pages,
                                        .state_slots = target_pool_.state_slots,
                                        .state_copies = target_pool_.state_copies,
                                        .records_max = target_pool_.state_records,
                                        .kv = options_.kv,
                                        .rows_max = options_.scheduling.budget.rows_max,
                                        .logits_rows_max = options_.scheduling.budget.logits_max};
  log_line(log_level::debug, "target model",
           "logits of a pass: at most " + std::to_string(how.logits_rows_max) + " rows, " +
               std::to_string((std::uint64_t{how.logits_rows_max} * target_config_.vocabulary * sizeof(float)) >> 20) +
               " MiB");
  // Created here once, so that a lack of memory fails the start instead of killing an actor.
  REDLINE_TRY_ASSIGN(auto first, model::transformer::create(weights, *target_table_, *target_team_, how));
  const auto costs = pass_costs(*first, *target_table_, options_.kv, options_.target_path, *target_file_);
  auto ready = std::make_shared<std::unique_ptr<model::transformer>>(std::move(first));
  target_ = make_worker(topology::target_worker);
  target_->core->add<target_model>(
      topology::target, "target model", {actor_mail_max, actor_mail_max},
      [=, this, manager = manager_ref(), chooser = options_.target_chooser, index = token_trie_,
       automata = automata_](actor::actor_context& c) {
        if (!*ready) {
          auto again = model::transformer::create(weights, *target_table_, *target_team_, how);
          if (!again) throw std::runtime_error(again.error().describe());
          *ready = std::move(*again);
        }
        return std::make_unique<target_model>(c, std::move(*ready), pages, manager, costs, chooser, index, automata);
      });
  return {};
}

/// The times of passes on this machine: from an earlier start, or measured now.
std::vector<pass_cost> engine::pass_costs(model::transformer& t, const kernels::kernel_table& table, model::kv_type kv,
                                          const std::string& path, const gguf::gguf_file& file) const {
  if (options_.measuring_max.count() == 0) return {};
  const auto& c = t.config();
  const cost::mixture_shape mixture = mixture_of(c);
  const cost_cache cache(
      options_.cost_folder,
      kernels::cpu_name() + ", " + std::string(table.name) + ", " + model::describe_numerics(table, kv) + ", " +
          std::to_string(options_.threads) + " threads, " + std::string(kernels::name_of(kv)) + " cache, " +
          std::string(c.family_name()) + " " + std::to_string(c.layers) + "x" + std::to_string(c.width) + "x" +
          std::to_string(c.feed_forward) + ", " + std::to_string(c.vocabulary) + " tokens, " +
          (mixture.is_dense() ? "" : std::to_string(mixture.experts) + " experts, ") +
          std::to_string(file.size_bytes()) + " bytes, " + version());
  if (auto known = cache.load()) return *known;
  if (options_.progress) options_.progress("timing passes of " + path, 0, 1);
  std::vector<pass_cost> costs;
  for (const auto& p : model::measure_passes(t, options_.measuring_max)) {
    costs.push_back({p.rows, p.logits, p.context, static_cast<std::uint64_t>(p.took.count()), p.experts});
  }
  // Without the file the next start takes a second or two longer.
  (void)cache.store(costs, mixture);
  return costs;
}

result<void> engine::add_draft() {
  const auto report = [this](std::uint64_t done, std::uint64_t all) {
    if (options_.progress) options_.progress(options_.draft_path, done, all);
  };
  draft_team_ = std::make_unique<kernels::worker_team>(options_.threads);
  REDLINE_TRY_ASSIGN(auto weights,
                     model::load_weights(*draft_file_, *draft_table_, *draft_team_, report, options_.draft_context));
  const std::uint32_t pages = draft_pages();
  const model::transformer::options how{.pages_count = pages, .kv = draft_kv, .rows_max = draft_rows_max};
  REDLINE_TRY_ASSIGN(auto first, model::transformer::create(weights, *draft_table_, *draft_team_, how));
  cost::cost_model passes(mixture_of(draft_config_));
  for (const pass_cost& c : pass_costs(*first, *draft_table_, draft_kv, options_.draft_path, *draft_file_)) {
    passes.observe(cost::size_of_run(c.context, c.rows, c.logits), microseconds{static_cast<std::int64_t>(c.took_us)},
                   c.experts_count);
  }
  auto ready = std::make_shared<std::unique_ptr<model::transformer>>(std::move(first));
  std::vector<token> ends;
  for (token t = 0; t < static_cast<token>(tokenizer_->size()); ++t) {
    if (tokenizer_->is_end_of_generation(t)) ends.push_back(t);
  }
  draft_ = make_worker(topology::draft_worker);
  draft_->core->add<draft_model>(
      topology::drafter, "draft model", {actor_mail_max, actor_mail_max},
      [=, this, context = draft_config_.context](actor::actor_context& c) {
        if (!*ready) {
          auto again = model::transformer::create(weights, *draft_table_, *draft_team_, how);
          if (!again) throw std::runtime_error(again.error().describe());
          *ready = std::move(*again);
        }
        const draft::small_model_runner::limits limits{.pages_count = pages, .context_max = context};
        draft::small_model_runner::parts small{.model = std::move(*ready),
                                               .end_tokens = ends,
                                               .passes = passes,
                                               .clock = &c.env(),
                                               .chooser = options_.draft_chooser};
        return std::make_unique<draft_model>(c, std::make_unique<draft::small_model_runner>(limits, std::move(small)),
                                             tracer());
      });
  return {};
}

void engine::run(hosted_worker& t, const std::string& name) {
  t.thread = std::thread([&t, name] {
    pthread_setname_np(pthread_self(), name.c_str());
    t.core->run();
  });
}

process_card engine::describe_itself() const {
  process_card card{.role = options_.roles.front ? process_role::gateway : process_role::worker,
                    .version = build_version(),
                    .host = read_host_name(),
                    .name = options_.model_name,
                    .aliases = options_.aliases,
                    .has_target = options_.roles.target,
                    .has_draft = options_.roles.draft && !options_.draft_path.empty(),
                    .model = model_digest(),
                    .header = header_ ? gguf::compute_header_digest(*header_) : 0,
                    .vocabulary = tokenizer_ ? tokenizer_->digest() : 0,
                    .context = context_max_,
                    .running_max = options_.scheduling.limits.running_max,
                    .waiting_max = options_.scheduling.limits.waiting_max,
                    .pages_count = target_pool_.pages,
                    .threads = options_.threads,
                    .sharing = options_.scheduling.sharing,
                    .since = started_unix_ms_,
                    .protocol = pool_protocol};
  card.numerics = numerics();
  card.label = options_.label.empty() ? card.host + ":" + std::to_string(::getpid()) : options_.label;
  return card;
}

std::string engine::numerics() const {
  if (!options_.roles.target) return {};
  // Another version may sample or apply grammars differently.
  return model::describe_numerics(*target_table_, options_.kv) +
         architecture::describe_rotation(target_config_, options_.context_max) + ", version " + version();
}

void engine::begin_hand_over() {
  told_at_ = std::chrono::steady_clock::now();
  auto card = describe_itself();
  card.is_draining = true;
  fabric_.update_card(actor::encode(card));
}

bool engine::is_handed_over() {
  if (!options_.roles.target) return true;  // drafts are optional
  bool is_empty = false;
  while (auto f = control_->receive()) {
    const auto m = actor::decode<scheduler_report>(f->body);
    is_empty = f->head.id == scheduler_report::id && m && m->asking_count == 0;
  }
  // Gateways that have just placed an answer here receive the new card first.
  if (is_empty && std::chrono::steady_clock::now() - told_at_ > hand_over_min) return true;
  ask_status();
  return false;
}

void engine::ask_status() {
  const auto self = make_address(fabric_.process(), control_worker, 1);
  const auto whom = options_.roles.target ? manager_ref().where : status_source();
  (void)control_->send(
      {actor::envelope{.to = whom, .from = self, .id = report_status::id}, actor::encode(report_status{})});
}

bool engine::is_responsive(std::chrono::milliseconds limit) {
  const auto now = std::chrono::steady_clock::now();
  const bool has_status = options_.roles.target || options_.roles.front;  // a draft worker has no actor to ask
  if (!has_status) return true;
  while (control_->receive()) answered_at_ = now;
  ask_status();
  return now - answered_at_ < limit;
}

result<void> engine::start() {
  if (is_in_pool()) {
    std::vector<actor::address> watchers;
    if (placer_ref()) watchers.push_back(placer_ref().where);
    if (options_.roles.target) watchers.push_back(manager_ref().where);
    options_.bridge.rules = make_pool_rules();
    options_.bridge.card = actor::encode(describe_itself());
    if (options_.broker) {
      options_.broker->rules = make_pool_rules();
      REDLINE_TRY(fabric_.start_broker(*options_.broker));
    }
    REDLINE_TRY(fabric_.start_bridge(options_.bridge, std::move(watchers)));
  }
  run(*io_, "redline-io");
  if (options_.roles.draft && !options_.draft_path.empty()) {
    REDLINE_TRY(add_draft());
    run(*draft_, "redline-draft");
  }
  if (options_.roles.target) {
    REDLINE_TRY(add_target());
    run(*target_, "redline-target");
  }
  return {};
}

void engine::stop_one(std::unique_ptr<hosted_worker>& t) {
  if (!t || !t->thread.joinable()) return;
  send(t->core->host_address(), actor::stop_worker{});
  t->thread.join();
}

void engine::stop() {
  if (std::exchange(stopped_, true)) return;
  stop_one(io_);
  if (pool_) pool_->stop();
  stop_one(draft_);
  stop_one(target_);
  fabric_.stop_bridge();
  exporter_.reset();  // sends what is left
}

}  // namespace redline::actors
