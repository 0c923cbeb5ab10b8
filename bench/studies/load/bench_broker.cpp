// redline bench broker: how many messages a broker carries and how long each takes.

#include "bench/studies/load/bench_broker.hpp"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "actors/cli/command.hpp"
#include "actors/messages/verify_messages.hpp"
#include "actors/node/pool_rules.hpp"
#include "bench/studies/common/json_file.hpp"
#include "bench/studies/common/statistics.hpp"
#include "runtime/actor/system_messages.hpp"
#include "runtime/base/log.hpp"
#include "transport/zmq/zmq_bridge.hpp"
#include "transport/zmq/zmq_broker.hpp"
#include "transport/zmq/zmq_fabric.hpp"

namespace redline::studies {
namespace {

using clock = std::chrono::steady_clock;
using actor::address;
using actor::envelope;
using actor::frame;
using actor::make_address;

double seconds_since(clock::time_point t) { return std::chrono::duration<double>(clock::now() - t).count(); }

/// A process of the pool as a broker sees it: a fabric with one worker on its own thread.
struct member {
  member(std::uint32_t number, process_role role, const std::string& endpoint)
      : fabric(number), link(fabric.make_link(1)), at(make_address(number, 1, 1)) {
    transport::bridge_options options;
    options.joins = {endpoint};
    options.card = actor::encode(process_card{.role = role, .protocol = pool_protocol});
    options.rules = make_pool_rules();
    started = fabric.start_bridge(options, {at});
  }
  transport::zmq_fabric fabric;
  std::unique_ptr<actor::link> link;
  address at;
  result<void> started;
};

/// Waits until this many other processes are here.
bool await_peers(member& m, std::uint32_t count) {
  const auto began = clock::now();
  while (count > 0 && seconds_since(began) < 10) {
    if (const auto f = m.link->receive()) {
      count -= f->head.id == actor::peer_state::id ? 1 : 0;
    } else {
      m.link->wait(microseconds{10'000});
    }
  }
  return count == 0;
}

void answer(member& m, const std::atomic<bool>& running) {
  while (running) {
    if (auto f = m.link->receive()) {
      if (f->head.id != verify_run::id) continue;
      (void)m.link->send({envelope{.to = f->head.from, .from = m.at, .id = verified::id}, std::move(f->body)});
    } else {
      m.link->wait(microseconds{1'000});
    }
  }
}

struct flood {
  std::uint64_t answers = 0;
  std::vector<double> round_us;  // set only with one question in flight
};

/// Keeps this many questions in flight to the workers, in turns.
flood ask(member& m, const std::vector<std::unique_ptr<member>>& workers, const broker_study_options& f,
          std::uint32_t in_flight) {
  flood done;
  const std::string body(f.bytes, 'x');
  std::size_t next = 0;
  std::uint32_t open = 0;
  const auto began = clock::now();
  auto asked = began;
  while (seconds_since(began) < f.seconds) {
    for (; open < in_flight; ++open) {
      asked = clock::now();
      (void)m.link->send(
          {envelope{.to = workers[next++ % workers.size()]->at, .from = m.at, .id = verify_run::id}, body});
    }
    while (const auto got = m.link->receive()) {
      if (got->head.id != verified::id && got->head.id != actor::undeliverable::id) continue;
      --open;
      if (got->head.id != verified::id) continue;
      ++done.answers;
      if (in_flight == 1) done.round_us.push_back(seconds_since(asked) * 1e6);
    }
    if (open == in_flight) m.link->wait(microseconds{1'000});
  }
  return done;
}

struct broker_process {
  explicit broker_process(const std::string& endpoint) : id(::fork()) {
    if (id != 0) return;
    transport::zmq_broker broker;
    const bool up = broker.start({.listens = {endpoint}, .rules = make_pool_rules()}).has_value();
    while (up && ::getppid() != 1) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    ::_exit(1);
  }
  ~broker_process() {
    ::kill(id, SIGKILL);
    ::waitpid(id, nullptr, 0);
  }
  /// The processor time of all its threads so far.
  [[nodiscard]] double cpu_seconds() const {
    clockid_t its_clock{};
    timespec t{};
    if (::clock_getcpuclockid(id, &its_clock) != 0 || ::clock_gettime(its_clock, &t) != 0) return 0;
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
  }
  pid_t id;
};

result<void> measure(const broker_study_options& f) {
  std::string folder = (std::filesystem::temp_directory_path() / "redline-broker-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return failure{errc::io_error, "cannot make a folder for the endpoint"};
  const std::shared_ptr<void> cleanup(nullptr, [folder](void*) { std::filesystem::remove_all(folder); });
  const std::string endpoint = "ipc://" + folder + "/bus";
  configure_log(log_level::error, log_format::text);
  const broker_process broker(endpoint);  // before any thread starts
  std::vector<std::unique_ptr<member>> gateways, workers;
  for (std::uint32_t i = 0; i < f.gateways; ++i) {
    gateways.push_back(std::make_unique<member>(100 + i, process_role::gateway, endpoint));
    REDLINE_TRY(gateways.back()->started);
  }
  for (std::uint32_t i = 0; i < f.workers; ++i) {
    workers.push_back(std::make_unique<member>(200 + i, process_role::worker, endpoint));
    REDLINE_TRY(workers.back()->started);
  }
  for (auto& g : gateways) {
    if (!await_peers(*g, f.workers)) return failure{errc::unreachable, "the processes did not meet"};
  }
  std::atomic<bool> running{true};
  std::vector<std::thread> threads;
  for (auto& w : workers) threads.emplace_back([&running, m = w.get()] { answer(*m, running); });

  const auto quiet = ask(*gateways.front(), workers, f, 1);

  const double cpu_before = broker.cpu_seconds();
  const auto began = clock::now();
  std::vector<flood> done(gateways.size());
  {
    std::vector<std::jthread> askers;
    for (std::size_t i = 0; i < gateways.size(); ++i) {
      askers.emplace_back([&, i] { done[i] = ask(*gateways[i], workers, f, f.in_flight); });
    }
  }
  const double took = seconds_since(began);
  const double cpu = broker.cpu_seconds() - cpu_before;
  running = false;
  for (auto& t : threads) t.join();

  double messages = 0;
  for (const auto& one : done) messages += 2 * static_cast<double>(one.answers);
  const double p50 = percentile(quiet.round_us, 50), p99 = percentile(quiet.round_us, 99);
  std::printf("messages of %u bytes, %u gateways and %u workers, %u questions of each on their way\n", f.bytes,
              f.gateways, f.workers, f.in_flight);
  std::printf("  %.0f messages a second; %.2f us of the broker's processor each: one core carries %.0f a second\n",
              messages / took, cpu / messages * 1e6, messages / cpu);
  std::printf("  a question and its answer alone: %.0f us median, %.0f us of 99 in 100\n", p50, p99);
  return write_json(f.json, {{"bytes", f.bytes},
                             {"gateways", f.gateways},
                             {"workers", f.workers},
                             {"in_flight", f.in_flight},
                             {"messages_per_second", messages / took},
                             {"broker_cpu_us_per_message", cpu / messages * 1e6},
                             {"messages_per_core_second", messages / cpu},
                             {"round_us_p50", p50},
                             {"round_us_p99", p99}});
}

}  // namespace

int run_broker_study(const broker_study_options& options) {
  const auto done = measure(options);
  return done ? 0 : report(done.error());
}

}  // namespace redline::studies
