// Equal sessions come to share one pass, with the real actors in a world whose clock and wires come from a seed. A pass
// takes the time that was measured on a machine. The rule itself is tested in tests/scheduler/gathering_test.cpp.

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "actors/serving/session.hpp"
#include "runtime/base/log.hpp"
#include "tests/support/serving_world.hpp"
#include "tests/support/tiny_model.hpp"

namespace redline::actors {
namespace {

using test::manager_where, test::target_where;
constexpr auto client_where = actor::make_address(1, 1, 9);
constexpr std::uint32_t pages_count = 1024;
constexpr std::uint32_t context_max = 1000;

/// A Qwen2-0.5B shape on two cores: reading the weights takes as long as 14 rows.
microseconds time_of(std::size_t rows) { return microseconds{15'000 + 1'100 * static_cast<std::int64_t>(rows)}; }

struct open_session {
  static constexpr actor::message_id id{0x0a11};
  static constexpr std::string_view name = "open_session";
  std::uint64_t number = 0;
  static constexpr auto fields(auto& self) { return std::tie(self.number); }
};

class users final : public actor::actor_of<users> {
 public:
  using accepts = actor::protocol<open_session, session_admitted, session_text, session_finished, actor::undeliverable>;
  users(actor::actor_context& context, std::shared_ptr<const text::tokenizer> tokenizer, std::size_t* finished)
      : actor_of(context), tokenizer_(std::move(tokenizer)), finished_(finished) {}

  void on(const open_session& m) {
    generation_spec g{{.session = {m.number}, .tenant = {1}}};
    for (std::uint64_t i = 0; i < 5; ++i) g.prompt.push_back(static_cast<token>((m.number * 7 + i) % 250));
    g.tokens_max = 900;
    g.context_max = context_max;
    g.ignore_end = true;
    g.draft.how = draft::method::regular;
    context().spawn<session>("session", {64, 64}, *token_log::make(g, tokenizer_),
                             session_partners{.manager = {manager_where}, .client = context().self()});
  }
  void on(const session_admitted&) {}
  void on(const session_text&) {}
  void on(const session_finished&) { ++*finished_; }
  void on(const actor::undeliverable&) {}

 private:
  std::shared_ptr<const text::tokenizer> tokenizer_;
  std::size_t* finished_;
};

/// n sessions of one process and the target model of another, with `latency` between them.
class shared_target {
 public:
  shared_target(std::uint64_t seed, microseconds latency) : world_(seed), chance_(seed), latency_(latency) {
    configure_log(log_level::off, log_format::text);
    const auto file = test::make_tiny_model({}).file();
    tokenizer_ = *text::tokenizer::from_file(*file);
    weights_ = *model::load_weights(*file, *kernels::process_table().table, team_);
    scheduler_options options;
    options.limits = {.running_max = 64, .waiting_max = 64, .tokens_max = context_max};
    options.budget = {.rows_max = 128, .prompt_chunk_rows_max = 64, .rows_min = 64};
    options.sharing = prefix_sharing::off;
    test::add_target(world_, options, pages_count, [this] {
      return std::move(
          *model::transformer::create(weights_, *kernels::process_table().table, team_,
                                      {.pages_count = pages_count, .kv = model::kv_type::f32, .rows_max = 128}));
    });
    world_.add_worker(1, 1).add<users>(9, "users", test::roomy, [this](actor::actor_context& c) {
      return std::make_unique<users>(c, tokenizer_, &finished_);
    });
    world_.on_wire = [this](actor::frame& f) { return on_wire(f); };
    world_.delay_of = [this](const actor::frame& f) {
      if (f.head.id == batch_done::id) return time_of(rows_);
      const bool crosses = actor::process_of(f.head.to) != actor::process_of(f.head.from);
      return microseconds{static_cast<std::int64_t>(20 + chance_.below(60))} + (crosses ? latency_ : microseconds{0});
    };
  }

  void open(std::uint64_t number) { world_.send(client_where, open_session{number}); }
  void restart(actor::address who) { world_.restart(who); }
  void lose_next_round() { loses_round_ = true; }
  void run_for(microseconds time) { world_.run_for(time); }
  [[nodiscard]] std::size_t finished() const { return finished_; }

  /// The number of decoding sequences in each pass from now on, for this long.
  std::vector<std::size_t> watch(microseconds time) {
    passes_.clear();
    world_.run_for(time);
    return passes_;
  }
  [[nodiscard]] double fill() {
    auto* scheduler = world_.worker_at(manager_where).find(actor::actor_ref<cache_manager>{manager_where});
    return scheduler->queue().gathered().fill;
  }

 private:
  bool on_wire(actor::frame& f) {
    if (f.head.id == forward_batch::id) {
      const auto m = *actor::decode<forward_batch>(f.body);
      rows_ = 0;
      std::size_t decodes = 0;
      for (const auto& run : m.runs) {
        rows_ += run.tokens.size();
        decodes += run.tokens.size() == 1 && run.first_position > 0 ? 1 : 0;
      }
      if (!m.runs.empty()) passes_.push_back(decodes);
    } else if (f.head.id == batch_done::id) {
      auto m = *actor::decode<batch_done>(f.body);
      m.elapsed_us = static_cast<std::uint64_t>(time_of(rows_).count());
      f.body = actor::encode(m);
    } else if (f.head.id == verify_run::id && std::exchange(loses_round_, false)) {
      return false;
    }
    return true;
  }

  test::actor_world world_;
  test::virtual_environment chance_;
  microseconds latency_;
  kernels::worker_team team_{1};
  std::shared_ptr<const text::tokenizer> tokenizer_;
  std::shared_ptr<const model::weights> weights_;
  std::size_t finished_ = 0;
  std::size_t rows_ = 0;
  bool loses_round_ = false;
  std::vector<std::size_t> passes_;
};

struct distance {
  std::uint64_t sessions = 0;
  microseconds latency{0};
};

class gathering_sim : public testing::TestWithParam<distance> {};

TEST_P(gathering_sim, equal_sessions_share_each_pass_soon_after_whatever_happens) {
  const auto [n, latency] = GetParam();
  shared_target all(n, latency);
  // Three rounds of all sessions, even while they take turns, including each round's messages.
  const microseconds settle = 6 * (time_of(n) + 2 * latency + microseconds{2'000});
  const auto expect_together = [&](const char* after, microseconds extra = {}) {
    all.run_for(settle + extra);
    const auto passes = all.watch(12 * (time_of(n) + 2 * latency + microseconds{2'000}));
    ASSERT_GE(passes.size(), 10U) << after;
    for (const std::size_t each : passes) EXPECT_EQ(each, n) << "after " << after;
  };
  for (std::uint64_t s = 1; s <= n; ++s) {
    all.open(s);
    all.run_for(microseconds{static_cast<std::int64_t>((s * 7919) % 23'000)});
  }
  expect_together("arrivals", 2 * time_of(n));
  all.lose_next_round();
  expect_together("a lost question", microseconds{3'000'000});  // the session repeats it after two seconds
  all.restart(target_where);
  expect_together("a restart of the target model", microseconds{6'000'000});  // all logs are recomputed
  EXPECT_EQ(all.finished(), 0U) << "all were still working";
  EXPECT_GT(all.fill(), 0.9);
}

INSTANTIATE_TEST_SUITE_P(distances, gathering_sim,
                         testing::Values(distance{2, {}}, distance{5, {}}, distance{16, {}},
                                         distance{2, microseconds{1'000}}, distance{16, microseconds{1'000}}));

}  // namespace
}  // namespace redline::actors
