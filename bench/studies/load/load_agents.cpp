#include "bench/studies/load/load_agents.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>

#include "actors/cli/command.hpp"
#include "bench/studies/load/load_client.hpp"
#include "bench/studies/load/load_trace.hpp"
#include "runtime/actor/codec.hpp"
#include "runtime/actor/system_messages.hpp"
#include "runtime/base/environment.hpp"
#include "transport/zmq/zmq_fabric.hpp"

namespace redline::studies {
namespace {

using actor::address;
using actor::envelope;
using actor::make_address;
using clock = std::chrono::steady_clock;

// The messages between coordinator and agents.
struct do_share {
  static constexpr actor::message_id id{0x0e01};
  static constexpr std::string_view name = "do_share";
  std::uint64_t number = 0;  // number of the job
  std::string server, api_key, edits, method;
  std::uint64_t edit_bytes_max = 0;
  bool is_rate = false;
  double amount = 0, completions = 0;
  std::uint32_t tokens_max = 0;
  bool predict = false;
  std::uint64_t count = 0, seed = 0;
  std::string tenant_keys, trace;
  bool is_trace = false;
  std::uint64_t part = 0, parts = 1;
  std::uint32_t turns = 1;
  double think_seconds = 0;
  static constexpr auto fields(auto& s) {
    return std::tie(s.number, s.server, s.api_key, s.edits, s.method, s.edit_bytes_max, s.is_rate, s.amount,
                    s.completions, s.tokens_max, s.predict, s.count, s.seed, s.tenant_keys, s.trace, s.is_trace, s.part,
                    s.parts, s.turns, s.think_seconds);
  }
};
struct share_ready {
  static constexpr actor::message_id id{0x0e02};
  static constexpr std::string_view name = "share_ready";
  std::uint64_t number = 0;
  std::string problem;  // empty if there is none
  static constexpr auto fields(auto& s) { return std::tie(s.number, s.problem); }
};
struct begin_share {
  static constexpr actor::message_id id{0x0e03};
  static constexpr std::string_view name = "begin_share";
  std::uint64_t number = 0;
  static constexpr auto fields(auto& s) { return std::tie(s.number); }
};
/// A part of the recording as JSON, with times relative to the arrival of begin_share.
struct share_done {
  static constexpr actor::message_id id{0x0e04};
  static constexpr std::string_view name = "share_done";
  std::uint64_t number = 0;
  std::string part;
  bool is_last = true;
  static constexpr auto fields(auto& s) { return std::tie(s.number, s.part, s.is_last); }
};

constexpr std::size_t part_bytes_max = 1U << 20;
constexpr std::size_t record_bytes_max = 1U << 30;  // limit of one agent

constexpr std::string_view coordinator_card = "redline load coordinator 2", agent_card = "redline load agent 2";

transport::pool_rules load_rules() {
  return {.read_role = [](std::string_view card) -> result<std::uint8_t> {
            if (card == coordinator_card) return std::uint8_t{1};
            if (card.starts_with(agent_card)) return std::uint8_t{2};
            return failure{errc::invalid_argument, "it is no load agent of this version"};
          },
          .may_meet = [](std::uint8_t a, std::uint8_t b) { return a != b; },
          .may_send =
              [](std::uint8_t role, actor::message_id what) {
                return role == 1 ? what == do_share::id || what == begin_share::id
                                 : what == share_ready::id || what == share_done::id;
              }};
}

actor::process_number draw_number() {
  return 1 + static_cast<actor::process_number>(real_environment().random() % actor::process_number_max);
}

double unix_now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

void shift(load_record& record, double by) {
  for (auto& w : record.windows) {
    w.began += by;
    w.ended += by;
  }
  for (auto& row : record.rows) row.sent += by;
}

template<class M>
void send(actor::link& link, address from, address to, const M& m) {
  (void)link.send({envelope{.to = to, .from = from, .id = M::id}, actor::encode(m)});
}

}  // namespace

load_job share_of(const load_job& job, std::size_t i, std::size_t agents) {
  load_job mine = job;
  const auto part = [&](std::uint64_t whole) { return whole / agents + (i < whole % agents ? 1 : 0); };
  // A share has whole conversations.
  mine.count = part(job.count / job.mix.turns) * job.mix.turns;
  if (i == 0) mine.count += job.count % job.mix.turns;
  mine.part = i;
  mine.parts = agents;
  if (job.level.is_trace) return mine;
  if (job.level.is_rate) {
    mine.level.amount = job.level.amount / static_cast<double>(agents);
  } else {
    mine.level.amount = static_cast<double>(part(static_cast<std::uint64_t>(job.level.amount)));
    if (mine.level.amount == 0) mine.count = 0;
  }
  mine.seed = job.seed + i * 1'000'003;
  return mine;
}

// ---- the coordinator -----------------------------------------------------------------------------------------------

struct load_agents::state {
  explicit state(actor::process_number number)
      : fabric(number), link(fabric.make_link(1)), self(make_address(number, 1, 1)) {}
  transport::zmq_fabric fabric;
  std::unique_ptr<actor::link> link;
  address self;
  std::map<actor::process_number, std::string> agents;  // with each agent's name for itself
  std::uint64_t jobs = 0;

  /// Returns the next message after applying news of agents, or nothing if none comes within a moment.
  std::optional<actor::frame> hear() {
    auto f = link->receive();
    if (!f) {
      link->wait(microseconds{20'000});
      return std::nullopt;
    }
    if (f->head.id != actor::peer_state::id) return f;
    if (const auto news = actor::decode<actor::peer_state>(f->body)) {
      if (news->process == 0) return std::nullopt;  // the broker's reply to this process itself
      if (news->reachable) {
        agents[news->process] = news->card.substr(agent_card.size());
      } else {
        agents.erase(news->process);
      }
    }
    return std::nullopt;
  }
};

load_agents::load_agents(std::unique_ptr<state> s) : state_(std::move(s)) {}
load_agents::~load_agents() = default;

std::vector<std::string> load_agents::endpoints() const { return state_->fabric.broker()->bound_endpoints(); }

result<std::unique_ptr<load_agents>> load_agents::gather(const options& how) {
  std::unique_ptr<load_agents> all(new load_agents(std::make_unique<state>(draw_number())));
  state& s = *all->state_;
  auto listen = how.listen;
  listen.rules = load_rules();
  REDLINE_TRY(s.fabric.start_broker(listen));
  transport::bridge_options own;
  own.card = coordinator_card;
  own.rules = load_rules();
  REDLINE_TRY(s.fabric.start_bridge(own, {s.self}));
  std::cerr << "redline: waiting for " << how.count << " load agents at " << all->endpoints().front() << "\n";
  const auto until = clock::now() + std::chrono::duration<double>(how.patience_seconds);
  while (s.agents.size() < how.count && clock::now() < until) (void)s.hear();
  if (s.agents.size() >= how.count) return all;
  return failure{errc::unreachable, "expected " + std::to_string(how.count) + " load agents, found " +
                                        std::to_string(s.agents.size()) + " within " +
                                        std::to_string(static_cast<int>(how.patience_seconds)) + " s"};
}

result<load_record> load_agents::run(const load_job& job) {
  state& s = *state_;
  const std::uint64_t number = ++s.jobs;
  const auto agents = s.agents;
  std::size_t i = 0;
  for (const auto& [process, name] : agents) {
    const load_job mine = share_of(job, i++, agents.size());
    send(*s.link, s.self, make_address(process, 1, 1),
         do_share{.number = number,
                  .server = mine.server,
                  .api_key = mine.api_key,
                  .edits = mine.edits,
                  .method = mine.method,
                  .edit_bytes_max = mine.edit_bytes_max,
                  .is_rate = mine.level.is_rate,
                  .amount = mine.level.amount,
                  .completions = mine.mix.completions,
                  .tokens_max = mine.mix.tokens_max,
                  .predict = mine.mix.predict,
                  .count = mine.count,
                  .seed = mine.seed,
                  .tenant_keys = mine.tenant_keys,
                  .trace = mine.trace,
                  .is_trace = mine.level.is_trace,
                  .part = mine.part,
                  .parts = mine.parts,
                  .turns = mine.mix.turns,
                  .think_seconds = mine.mix.think_seconds});
  }
  std::size_t ready = 0, done = 0;
  double began = 0;
  std::map<actor::process_number, std::string> texts;
  load_record all;
  while (done < agents.size()) {
    const auto f = s.hear();
    for (const auto& [process, name] : agents) {
      if (!s.agents.contains(process)) return failure{errc::unreachable, "the load agent on" + name + " is gone"};
    }
    if (!f) continue;
    const auto from = actor::process_of(f->head.from);
    if (f->head.id == actor::undeliverable::id) return failure{errc::unreachable, "a load agent could not be told"};
    if (f->head.id == share_ready::id) {
      const auto m = actor::decode<share_ready>(f->body);
      if (!m || m->number != number) continue;
      if (!m->problem.empty())
        return failure{errc::invalid_argument, "the load agent on" + agents.at(from) + ": " + m->problem};
      if (++ready < agents.size()) continue;
      began = unix_now();
      for (const auto& [process, name] : agents) {
        send(*s.link, s.self, make_address(process, 1, 1), begin_share{number});
      }
    } else if (f->head.id == share_done::id) {
      const auto m = actor::decode<share_done>(f->body);
      if (!m || m->number != number || !agents.contains(from)) continue;
      std::string& text = texts[from];
      text += m->part;
      if (text.size() > record_bytes_max) return failure{errc::invalid_argument, "a load agent says too much"};
      if (!m->is_last) continue;
      ++done;
      REDLINE_TRY_ASSIGN(auto record, parse_load_record(text, "the record of the load agent on" + agents.at(from)));
      shift(record, began);
      for (auto& w : record.windows) w.level = job.level.name();
      for (auto& row : record.rows) row.level = job.level.name();
      REDLINE_TRY(all.add(std::move(record)));
    }
  }
  return all;
}

// ---- an agent ------------------------------------------------------------------------------------------------------

namespace {

/// A prepared share that is ready to begin.
struct prepared_share {
  std::uint64_t number = 0;
  load_level level;
  std::string method;
  load_mix mix;
  std::vector<known_edit> edits;
  std::vector<planned_request> plan;
  std::optional<tenant_doors> doors;
};

result<prepared_share> prepare(const do_share& m) {
  prepared_share out{.number = m.number,
                     .level = {m.is_rate, m.amount, m.is_trace},
                     .method = m.method,
                     .mix = {.completions = m.completions,
                             .tokens_max = m.tokens_max,
                             .predict = m.predict,
                             .turns = std::max(m.turns, 1U),
                             .think_seconds = m.think_seconds}};
  REDLINE_TRY_ASSIGN(out.edits, parse_edits(m.edits, "the coordinator's edits"));
  if (m.edit_bytes_max != 0) {
    std::erase_if(out.edits, [&](const known_edit& e) { return e.task.before.size() > m.edit_bytes_max; });
  }
  REDLINE_TRY_ASSIGN(out.doors, tenant_doors::make(m.server, m.api_key, m.tenant_keys));
  out.mix.tenants = out.doors->tenants();
  if (m.is_trace) {
    REDLINE_TRY_ASSIGN(auto all, parse_trace(m.trace, "the coordinator's trace", std::max(m.amount, 1e-6)));
    out.plan = share_of_trace(std::move(all), m.part, std::max<std::size_t>(m.parts, 1));
    return out;
  }
  if (m.count > 0) out.plan = plan_requests(out.level, m.count, m.seed, out.edits, out.mix);
  return out;
}

void do_it(const prepared_share& share, actor::link& link, address self, address coordinator) {
  const double began = unix_now();
  std::atomic<std::size_t> done{0};
  load_record record;
  if (!share.plan.empty()) {
    record = run_level(
        share.level, share.method, share.plan,
        [&](std::size_t i, const std::vector<past_turn>& before) {
          return ask(share.doors->of(share.plan[i].tenant),
                     question_of(share.plan[i], share.edits, share.mix, share.method, before));
        },
        done);
  }
  shift(record, -began);
  const std::string text = json_of(record).dump();
  for (std::size_t at = 0; at == 0 || at < text.size(); at += part_bytes_max) {
    send(link, self, coordinator,
         share_done{share.number, text.substr(at, part_bytes_max), at + part_bytes_max >= text.size()});
  }
}

}  // namespace

/// An agent may start long before the coordinator that it waits for.
constexpr microseconds coordinator_patience = std::chrono::hours(24);

int run_load_agent(const transport::bridge_options& join) {
  const auto number = draw_number();
  transport::zmq_fabric fabric(number);
  const auto link = fabric.make_link(1);
  const address self = make_address(number, 1, 1);
  std::array<char, 256> host{};
  (void)::gethostname(host.data(), host.size() - 1);
  auto options = join;
  options.card = std::string(agent_card) + " " + host.data() + " (process " + std::to_string(::getpid()) + ")";
  options.rules = load_rules();
  options.missed_after = coordinator_patience;
  if (const auto joined = fabric.start_bridge(options, {self}); !joined) return report(joined.error());
  std::optional<prepared_share> share;
  for (bool has_met = false;;) {
    const auto f = link->receive();
    if (!f) {
      link->wait(microseconds{100'000});
      continue;
    }
    if (f->head.id == actor::peer_state::id) {
      const auto news = actor::decode<actor::peer_state>(f->body);
      if (!news) continue;
      if (news->process == 0 && news->reachable) continue;
      if (news->process == 0) return report(failure{errc::unreachable, news->why_not});
      if (!news->reachable && has_met) return 0;  // the coordinator is finished
      has_met = has_met || news->reachable;
    } else if (const auto m =
                   f->head.id == do_share::id ? actor::decode<do_share>(f->body) : result<do_share>(failure{})) {
      auto made = prepare(*m);
      send(*link, self, f->head.from, share_ready{m->number, made ? "" : made.error().context});
      share = made ? std::optional(std::move(*made)) : std::nullopt;
    } else if (f->head.id == begin_share::id && share) {
      do_it(*share, *link, self, f->head.from);
      share.reset();
    }
  }
}

}  // namespace redline::studies
