// Stories of requests through the real gateway, in which one actor is killed after the n-th message, for each actor and
// many n: each request is answered with the bytes of an undisturbed run or with one clear error, and none hangs.
// REDLINE_RESTART_STRIDE=1 tries every n; the usual run takes every third.

#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>

#include "actors/http/gateway.hpp"
#include "actors/node/supervisor.hpp"
#include "runtime/base/log.hpp"
#include "tests/support/rounds.hpp"
#include "tests/support/serving_world.hpp"
#include "tests/support/tiny_model.hpp"

namespace redline::actors {
namespace {

using json = nlohmann::json;
using test::cache_where, test::lookup_where, test::scheduler_where, test::target_where;

constexpr std::uint32_t context_max = 256;
constexpr std::uint32_t pages_count = 12;
constexpr microseconds story_max{300'000'000};  // virtual
constexpr auto supervisor_where = actor::make_address(1, 1, 1);
constexpr auto gateway_where = actor::make_address(1, 1, 2);
constexpr auto http_where = actor::make_address(1, 2, 8);
constexpr auto drafter_where = actor::make_address(3, 4, 6);
constexpr std::uint32_t temporary_numbers_begin = 1000;

struct models {
  models() {
    const auto file = test::make_tiny_model({.context = context_max}).file();
    tokenizer = *text::tokenizer::from_file(*file);
    trie = *grammar::token_trie::make(tokenizer);
    big = *model::load_weights(*file, table, team);
    small = *model::load_weights(*test::make_tiny_model({.layers = 1, .context = context_max}).file(), table, team);
  }
  [[nodiscard]] std::unique_ptr<model::transformer> make(bool is_big) {
    return std::move(*model::transformer::create(
        is_big ? big : small, table, team, {.pages_count = pages_count, .kv = model::kv_type::f32, .rows_max = 64}));
  }
  const kernels::kernel_table& table = *kernels::process_table().table;
  kernels::worker_team team{1};
  std::shared_ptr<const text::tokenizer> tokenizer;
  std::shared_ptr<const grammar::token_trie> trie;
  std::shared_ptr<const model::weights> big;
  std::shared_ptr<const model::weights> small;
};

models& shared_models() {
  static models all;
  return all;
}

struct answer {
  std::uint32_t status = 0;
  std::string body;
};

/// Requests, one after the other. A path may name the edit session that the first answer opened: {id}.
struct request {
  std::string method;
  std::string path;
  json body;
};

/// What stays the same in another run of the same request.
json essence(const answer& a) {
  json body = json::parse(a.body, nullptr, false);
  if (!body.is_object()) return {};
  json out = {{"status", a.status}};
  for (const json& choice : body.value("choices", json::array())) {
    out["said"].push_back(choice.contains("message") ? choice["message"]["content"] : choice["text"]);
    out["reason"].push_back(choice["finish_reason"]);
  }
  return out;
}

struct story {
  std::vector<request> requests;
  std::vector<answer> answers;
  [[nodiscard]] bool is_over() const {
    return answers.size() == requests.size() || (!answers.empty() && answers.back().status >= 400);
  }
};

/// The server's HTTP side, with one client that sends the story's requests.
class http_client_actor final : public actor::actor_of<http_client_actor> {
 public:
  using accepts = actor::protocol<http_respond, http_body, http_stream, http_progress, http_fail, http_forget,
                                  http_drain, gateway_tick, actor::undeliverable>;
  http_client_actor(actor::actor_context& context, std::shared_ptr<story> s)
      : actor_of(context), story_(std::move(s)) {}

  void on_start() { context().after(microseconds{1'500'000}, gateway_tick{}); }  // when the target model is known
  void on(const gateway_tick&) { ask(); }
  void on(const http_respond& m) {
    if (m.exchange == exchange_ && !m.more) end(m.status, m.body);
  }
  void on(const http_fail& m) {
    if (m.exchange == exchange_) end(m.status, m.error);
  }
  void on(const http_forget&) { lose(); }
  void on(const actor::undeliverable& m) {
    if (m.what == http_arrived::id && m.about == exchange_) lose();
  }
  void on(const http_body&) {}
  void on(const http_stream&) {}
  void on(const http_progress&) {}
  void on(const http_drain&) {}

 private:
  void ask() {
    if (story_->is_over()) return;
    request r = story_->requests[story_->answers.size()];
    if (const auto at = r.path.find("{id}"); at != std::string::npos) {
      r.path.replace(at, 4, json::parse(story_->answers.at(0).body).at("id").get<std::string>());
    }
    is_open_ = true;
    context().send(gateway_where, http_arrived{.exchange = ++exchange_,
                                               .method = r.method,
                                               .path = r.path,
                                               .body = r.body.is_null() ? "" : r.body.dump()});
  }
  void lose() { end(503, R"({"error":{"message":"The server was restarted."}})"); }
  void end(std::uint32_t status, std::string body) {
    if (!std::exchange(is_open_, false)) return;
    story_->answers.push_back({status, std::move(body)});
    context().after(microseconds{1000}, gateway_tick{});
  }

  std::shared_ptr<story> story_;
  std::uint64_t exchange_ = 0;
  bool is_open_ = false;
};

void populate(test::actor_world& world, const std::shared_ptr<story>& s) {
  auto& m = shared_models();
  scheduler_options options;
  options.limits = {.running_max = 6, .waiting_max = 64, .tokens_max = context_max, .pages_count = pages_count};
  options.budget = {.rows_max = 64, .prompt_chunk_rows_max = 16};
  test::add_target(
      world, options, [] { return shared_models().make(true); }, m.trie);
  test::add_lookup(world);
  world.add_worker(3, 4).add<draft_model>(6, "draft model", test::roomy, [](actor::actor_context& c) {
    std::vector<token> ends;
    for (token t = 0; t < static_cast<token>(shared_models().tokenizer->size()); ++t) {
      if (shared_models().tokenizer->is_end_of_generation(t)) ends.push_back(t);
    }
    return std::make_unique<draft_model>(
        c, std::make_unique<draft::draft_engine>(
               draft::engine_limits{.model = {.prompt_chunk_rows_max = 24, .pages_count = pages_count}},
               draft::engine_model{.model = shared_models().make(false), .end_tokens = ends}));
  });
  auto services = std::make_shared<gateway_services>();
  auto model = std::make_shared<served_model>();
  model->name = "tiny";
  model->answers = std::make_shared<answer_factory>(answer_factory::parts{
      .tokenizer = m.tokenizer,
      .token_trie = m.trie,
      .context_max = context_max,
      .partners_for = [](draft::method, actor::address client) -> result<session_partners> {
        return session_partners{
            .scheduler = {scheduler_where}, .drafter = {drafter_where}, .stand_in = {lookup_where}, .client = client};
      }});
  model->prompts =
      std::make_shared<prompt_builder>(m.tokenizer, *jinja::chat_template::parse(std::string(jinja::chatml_template)));
  model->draft_defaults.how = draft::method::automatic;
  services->models->publish(model);
  services->scheduler = {scheduler_where};
  services->http = http_where;
  world.add_worker(1, 2).add<http_client_actor>(
      8, "http", test::roomy, [s](actor::actor_context& c) { return std::make_unique<http_client_actor>(c, s); });
  auto& io = world.add_worker(1, 1);
  io.report_deaths_to(supervisor_where);
  io.add<supervisor>(1, "supervisor", test::roomy, [](actor::actor_context& c) {
    std::vector<actor::restart_policy> groups;
    groups.emplace_back(actor::restart_strategy::one_for_one, actor::restart_limit{}, std::vector{gateway_where});
    return std::make_unique<supervisor>(c, groups, gateway_where, [](const std::string&) {});
  });
  io.add<gateway>(2, "gateway", test::roomy,
                  [services](actor::actor_context& c) { return std::make_unique<gateway>(c, services); });
}

enum class victim : std::uint8_t { nobody, gateway, scheduler, cache_manager, target, drafter, session };
constexpr std::array<std::string_view, 7> victim_names = {"nobody", "gateway", "scheduler", "cache manager",
                                                          "target", "drafter", "session"};

struct outcome {
  bool is_over = false;
  std::size_t messages = 0;
  std::vector<answer> answers;
};

/// Kills the victim after the given number of messages, counted from the first request.
outcome play(const std::vector<request>& requests, victim who, std::size_t after) {
  configure_log(log_level::off, log_format::text);
  test::actor_world world(7);
  auto s = std::make_shared<story>(story{requests, {}});
  outcome out;
  actor::address latest;  // temporary actor that said something
  bool has_begun = false;
  world.on_wire = [&](actor::frame& f) {
    has_begun = has_begun || f.head.id == http_arrived::id;
    if (has_begun && !s->is_over()) ++out.messages;
    const bool is_temporary = actor::number_of(f.head.from) >= temporary_numbers_begin;
    if (actor::node_of(f.head.from) == actor::node_of(gateway_where) && is_temporary) latest = f.head.from;
    return true;
  };
  populate(world, s);
  bool is_dead = who == victim::nobody;
  const auto strike = [&] {
    if (is_dead || out.messages < after) return;
    switch (who) {
      case victim::gateway:
        world.worker_at(gateway_where).kill(gateway_where);
        break;
      case victim::session:
        if (latest.value == 0) return;
        world.worker_at(latest).kill(latest);
        break;
      default: {
        const actor::address where[] = {{}, {}, scheduler_where, cache_where, target_where, drafter_where};
        world.restart(where[static_cast<std::size_t>(who)]);
      }
    }
    is_dead = true;
  };
  out.is_over = world.run_until([&] { return s->is_over(); }, story_max, strike);
  out.answers = s->answers;
  return out;
}

json chat(json more) {
  json body = {{"messages", {{{"role", "user"}, {"content", "abc abd abe abc abd abe"}}}}, {"max_tokens", 24}};
  body.update(more);
  return body;
}

const std::vector<std::pair<std::string, std::vector<request>>>& stories() {
  static const std::vector<std::pair<std::string, std::vector<request>>> all = {
      {"plain", {{"POST", "/v1/chat/completions", chat({{"temperature", 0}})}}},
      {"sampled",
       {{"POST", "/v1/chat/completions",
         chat({{"temperature", 0.8}, {"seed", 3}, {"frequency_penalty", 0.5}, {"n", 2}})}}},
      {"grammar",
       {{"POST", "/v1/chat/completions",
         chat({{"temperature", 0},
               {"max_tokens", 40},
               {"response_format",
                {{"type", "json_schema"},
                 {"json_schema",
                  {{"name", "x"},
                   {"schema",
                    {{"type", "object"},
                     {"properties", {{"name", {{"type", "string"}, {"maxLength", 8}}}}},
                     {"required", {"name"}},
                     {"additionalProperties", false}}}}}}}})}}},
      {"copy",
       {{"POST", "/v1/chat/completions",
         chat({{"temperature", 0},
               {"max_tokens", 40},
               {"redline", {{"copy", "verified"}, {"files", {"a b\nc\nd\n"}}}}})}}},
      {"evicting",
       {{"POST",
         "/v1/completions",
         {{"prompt", "abcabdabeabcabdabe"},
          {"temperature", 0},
          {"max_tokens", 60},
          {"redline", {{"eviction", {{"policy", "reevaluate"}, {"n_keep", 4}, {"n_ctx", 40}, {"n_discard", 10}}}}}}}}},
      {"live",
       {{"POST", "/v1/redline/sessions", {{"files", {{{"path", "a.txt"}, {"text", "abc\nabd\nabe\nabc\n"}}}}}},
        {"POST",
         "/v1/redline/sessions/{id}/complete",
         {{"path", "a.txt"}, {"position", {{"line", 2}, {"character", 1}}}, {"max_tokens", 12}, {"temperature", 0}}},
        {"PATCH",
         "/v1/redline/sessions/{id}/files/a.txt",
         {{"version", 2}, {"edits", json::array({{{"bytes", {{"start", 4}, {"end", 7}}}, {"text", "new words"}}})}}},
        {"POST",
         "/v1/redline/sessions/{id}/complete",
         {{"path", "a.txt"}, {"position", {{"line", 3}, {"character", 2}}}, {"max_tokens", 12}, {"temperature", 0}}}}},
  };
  return all;
}

std::size_t stride() {
  if (const char* text = std::getenv("REDLINE_RESTART_STRIDE")) return std::max(1, std::atoi(text));
  return test::rounds(3, 47);
}

class restart_matrix : public testing::TestWithParam<std::size_t> {};

TEST_P(restart_matrix, gives_the_same_bytes_or_one_clear_error_when_an_actor_dies) {
  const auto& [name, requests] = stories()[GetParam()];
  const outcome calm = play(requests, victim::nobody, 0);
  ASSERT_TRUE(calm.is_over);
  for (const answer& a : calm.answers) ASSERT_LT(a.status, 300u) << name << ": " << a.body;
  ASSERT_TRUE(essence(calm.answers.back()).contains("said")) << calm.answers.back().body;
  std::size_t same = 0, failed = 0;
  for (const auto who :
       {victim::gateway, victim::scheduler, victim::cache_manager, victim::target, victim::drafter, victim::session}) {
    for (std::size_t after = 1; after < calm.messages; after += stride()) {
      const std::string where =
          name + ", " + std::string(victim_names[static_cast<std::size_t>(who)]) + " after " + std::to_string(after);
      const outcome o = play(requests, who, after);
      ASSERT_TRUE(o.is_over) << where << ": no answer";
      for (std::size_t i = 0; i < o.answers.size(); ++i) {
        const answer& a = o.answers[i];
        if (a.status < 400) {
          EXPECT_EQ(essence(a), essence(calm.answers[i])) << where << ", request " << i;
          continue;
        }
        ++failed;
        const json body = json::parse(a.body, nullptr, false);
        EXPECT_TRUE(body.is_object() && body.contains("error") && body["error"].value("message", "") != "")
            << where << ": " << a.status << " " << a.body;
        // Of the others only a request that comes while the target model is not known yet is refused.
        EXPECT_TRUE(who == victim::gateway || who == victim::session || a.status == 503)
            << where << ": " << a.status << " " << a.body;
      }
      same += o.answers.back().status < 400 ? 1 : 0;
    }
  }
  std::printf("%s: %zu messages; %zu runs gave the same bytes, %zu one error\n", name.c_str(), calm.messages, same,
              failed);
  EXPECT_GT(same, failed);
}

/// An answer that would go on for long after its client has the error.
TEST(restart_matrix_leftovers, answers_of_a_gateway_that_died_end) {
  configure_log(log_level::off, log_format::text);
  const json endless = {
      {"prompt", "abcabdabeabcabdabe"},
      {"temperature", 0},
      {"max_tokens", 1'000'000},
      {"ignore_eos", true},
      {"n", 2},
      {"redline", {{"eviction", {{"policy", "reevaluate"}, {"n_keep", 4}, {"n_ctx", 40}, {"n_discard", 10}}}}}};
  for (const std::size_t after : {40U, 80U, 200U}) {
    test::actor_world world(7);
    auto s = std::make_shared<story>(story{{{"POST", "/v1/completions", endless}}, {}});
    std::size_t messages = 0, asked = 0, released = 0;
    world.on_wire = [&](actor::frame& f) {
      messages += f.head.id == verify_run::id || messages > 0 ? 1 : 0;
      asked += f.head.id == verify_run::id ? 1 : 0;
      released += f.head.id == release_sequence::id ? 1 : 0;
      return true;
    };
    populate(world, s);
    ASSERT_TRUE(world.run_until([&] { return messages >= after; }, story_max));
    EXPECT_EQ(released, 0U) << after;
    world.worker_at(gateway_where).kill(gateway_where);
    ASSERT_TRUE(world.run_until([&] { return s->is_over(); }, story_max));
    EXPECT_EQ(s->answers.back().status, 503U);
    world.run_for(microseconds{1'000'000});
    EXPECT_EQ(released, 2U) << after << ": no sequence is left";
    asked = 0;
    world.run_for(microseconds{1'000'000});
    EXPECT_EQ(asked, 0U) << after;
  }
}

INSTANTIATE_TEST_SUITE_P(stories, restart_matrix, testing::Range<std::size_t>(0, 6),
                         [](const auto& story) { return stories()[story.param].first; });

}  // namespace
}  // namespace redline::actors
