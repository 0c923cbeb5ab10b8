// Series of requests through the real gateway in which one actor is killed after the n-th message, for each actor and
// many n. Each request gets the bytes of an undisturbed run or one clear error, and none hangs.
// REDLINE_RESTART_STRIDE=1 tries every n; the default run tries every fifth.

#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>

#include "actors/http/gateway.hpp"
#include "actors/http/http_actor.hpp"
#include "actors/node/supervisor.hpp"
#include "actors/pool/header_server.hpp"
#include "actors/pool/model_fetcher.hpp"
#include "actors/serving/placer.hpp"
#include "runtime/base/log.hpp"
#include "runtime/gguf/file_digest.hpp"
#include "tests/support/rounds.hpp"
#include "tests/support/serving_world.hpp"
#include "tests/support/tiny_model.hpp"

namespace redline::actors {
namespace {

using json = nlohmann::json;
using test::manager_where, test::target_where;

constexpr std::uint32_t context_max = 256;
constexpr std::uint32_t pages_count = 12;
constexpr microseconds story_max{300'000'000};  // in virtual time
constexpr auto supervisor_where = actor::make_address(1, 1, 1);
constexpr auto gateway_where = actor::make_address(1, 1, 2);
constexpr auto http_where = actor::make_address(1, 2, 8);
constexpr auto drafter_where = actor::make_address(3, 4, 6);
constexpr auto header_where = actor::make_address(2, 1, 10);
constexpr auto placer_where = actor::make_address(1, 1, 11);
constexpr auto models_where = actor::make_address(1, 1, 12);
/// A short template with tools, because a token of these models is a byte.
constexpr std::string_view short_template =
    R"({%- for tool in tools or [] %}{{ tool.function.name }} {% endfor %}{%- for m in messages %}{{ m.content or '' }}
{% for call in m.tool_calls or [] %}<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>{% endfor %}{% endfor %})";
constexpr std::uint32_t temporary_numbers_begin = 1000;

struct models {
  explicit models(bool is_hybrid) {
    test::tiny_shape shape{.context = context_max};
    if (is_hybrid) {
      shape.architecture = "qwen35";
      shape.mtp = true;
      memory.state_slots = 6;
      memory.state_copies = 4;
      memory.state_records = 9;
    }
    const auto file = test::make_tiny_model(shape).file();
    header = std::make_shared<const std::string>(file->copy_header());
    card = {.name = "tiny",
            .has_target = true,
            .model = gguf::compute_file_digest(*file),
            .header = gguf::compute_header_digest(*header),
            .numerics = "exact",
            .context = context_max,
            .running_max = 6,
            .waiting_max = 64,
            .pages_count = pages_count};
    tokenizer = *text::tokenizer::from_file(*file);
    card.vocabulary = tokenizer->digest();
    trie = *grammar::token_trie::make(tokenizer);
    big = *model::load_weights(*file, table, team);
    small = *model::load_weights(*test::make_tiny_model({.layers = 1, .context = context_max}).file(), table, team);
  }
  [[nodiscard]] std::unique_ptr<model::transformer> make(bool is_big) {
    return std::move(*model::transformer::create(is_big ? big : small, table, team,
                                                 {.pages_count = pages_count,
                                                  .state_slots = memory.state_slots,
                                                  .state_copies = memory.state_copies,
                                                  .records_max = memory.state_records,
                                                  .kv = model::kv_type::f32,
                                                  .rows_max = 64}));
  }
  kv::pool_size memory{pages_count};
  const kernels::kernel_table& table = *kernels::process_table().table;
  kernels::worker_team team{1};
  std::shared_ptr<const std::string> header;  // header of the target model's file
  process_card card;                          // card of a worker that serves it
  std::shared_ptr<const text::tokenizer> tokenizer;
  std::shared_ptr<const grammar::token_trie> trie;
  std::shared_ptr<const model::weights> big;
  std::shared_ptr<const model::weights> small;
};

bool serves_hybrid = false;  // set by the story that is played

models& shared_models() {
  static std::array<std::unique_ptr<models>, 2> all;
  auto& one = all.at(serves_hybrid ? 1 : 0);
  if (!one) one = std::make_unique<models>(serves_hybrid);
  return *one;
}

struct answer {
  std::uint32_t status = 0;
  std::string body;
  std::string streamed;  // the events, if the answer was a stream that ended with this status
};

/// Requests that are sent one after the other. A path may contain {id}, the edit session that the first answer opened.
struct request {
  std::string method;
  std::string path;
  json body;
};

/// What stays the same when the same request runs again.
json essence(const answer& a) {
  json body = json::parse(a.body, nullptr, false);
  if (!body.is_object()) return {};
  json out = {{"status", a.status}};
  for (const json& choice : body.value("choices", json::array())) {
    if (choice.contains("text")) {
      out["said"].push_back(choice["text"]);
    } else {
      const json& message = choice["message"];
      out["said"].push_back(message.value("content", json()));
      for (const json& call : message.value("tool_calls", json::array())) out["said"].push_back(call["function"]);
    }
    out["reason"].push_back(choice["finish_reason"]);
  }
  return out;
}

/// Converts a stream into a plain answer, as far as its events came.
answer join_events(const answer& a) {
  json message = {{"content", ""}};
  json choice = {{"finish_reason", nullptr}};
  for (std::size_t at = 0; (at = a.streamed.find("data: ", at)) != std::string::npos;) {
    at += 6;
    const json event = json::parse(a.streamed.substr(at, a.streamed.find("\n\n", at) - at), nullptr, false);
    if (event.is_object() && event.contains("error")) return {500, event.dump(), a.streamed};
    if (!event.is_object() || event.value("choices", json::array()).empty()) continue;
    const json& part = event["choices"][0];
    if (!part["finish_reason"].is_null()) choice["finish_reason"] = part["finish_reason"];
    const json& delta = part["delta"];
    if (delta.contains("content") && delta["content"].is_string()) {
      message["content"] = message["content"].get<std::string>() + delta["content"].get<std::string>();
    }
    for (const json& call : delta.value("tool_calls", json::array())) {
      json& all = message["tool_calls"];
      const auto index = call["index"].get<std::size_t>();
      while (all.size() <= index) all.push_back({{"function", {{"name", ""}, {"arguments", ""}}}});
      json& function = all[index]["function"];
      for (const char* member : {"name", "arguments"}) {
        function[member] = function[member].get<std::string>() + call["function"].value(member, "");
      }
    }
  }
  choice["message"] = message;
  return {a.status, json{{"choices", {choice}}}.dump(), {}};
}

struct story {
  std::vector<request> requests;
  std::vector<answer> answers;
  [[nodiscard]] bool is_over() const {
    return answers.size() == requests.size() || (!answers.empty() && answers.back().status >= 400);
  }
};

/// Replaces the HTTP server: one client that sends the story's requests.
class http_client {
 public:
  explicit http_client(std::shared_ptr<story> s) : story_(std::move(s)) {}

  /// Sends the next request when none is open and the target model is known. It steps as the server's thread does.
  void step(test::actor_world& world);

  void respond(transport::exchange_id id, unsigned status, const std::vector<transport::http_header>&,
               std::string body) {
    if (id.value == open_) end(status, std::move(body));
  }
  void begin_stream(transport::exchange_id, unsigned, const std::vector<transport::http_header>&) {}
  void write(transport::exchange_id id, std::string_view data) {
    if (id.value == open_) streamed_ += data;
  }
  void end_stream(transport::exchange_id id) {
    if (id.value == open_) end(200, {});
  }
  void fail(transport::exchange_id id, unsigned status, const std::vector<transport::http_header>&,
            const std::string& error) {
    if (id.value == open_) end(status, error);
  }
  void fail_all(unsigned status, const std::string& error) {
    if (open_ == 0) return;
    closed_.push_back(open_);
    end(status, error);
  }
  void note_progress(transport::exchange_id) {}
  void hold_open(transport::exchange_id, const std::vector<transport::http_header>&) {}
  void drain() {}

 private:
  void end(unsigned status, std::string body) {
    answer a{status, std::move(body), std::exchange(streamed_, {})};
    if (!a.streamed.empty() && a.body.empty()) a = join_events(a);
    story_->answers.push_back(std::move(a));
    open_ = 0;
  }

  std::shared_ptr<story> story_;
  std::optional<instant> begins_;
  std::uint64_t last_ = 0, open_ = 0;  // exchange numbers
  std::string streamed_;
  std::vector<std::uint64_t> closed_;  // exchanges whose closing must still be reported to the actor
};

using http_side = http_actor<http_client>;

void http_client::step(test::actor_world& world) {
  auto& core = world.worker_at(http_where);
  const actor::actor_ref<http_side> self{http_where};
  for (const std::uint64_t id : std::exchange(closed_, {})) {
    call_actor(core, self, [&](http_side& a) { a.closed({id}); });
  }
  const instant now = world.env().now();
  if (!begins_) begins_ = now + microseconds{1'500'000};
  if (open_ != 0 || story_->is_over() || now < *begins_) return;
  const request& r = story_->requests[story_->answers.size()];
  transport::http_request sent{
      .method = r.method, .path = r.path, .body = r.body.is_null() ? std::string() : r.body.dump()};
  if (const auto at = sent.path.find("{id}"); at != std::string::npos) {
    sent.path.replace(at, 4, json::parse(story_->answers.at(0).body).at("id").get<std::string>());
  }
  open_ = ++last_;
  call_actor(core, self, [&](http_side& a) { a.arrived({open_}, std::move(sent)); });
}

/// A gateway's process, and workers with the target model and the draft model.
struct serving_processes {
  /// With is_pool, the gateway learns of the worker from the pool, and of the model from the worker.
  serving_processes(test::actor_world& world, std::shared_ptr<story> s, bool is_pool);
  std::unique_ptr<http_client> browser;

 private:
  void add_model();
  void add_pool(test::actor_world& world);
  std::shared_ptr<gateway_services> services = std::make_shared<gateway_services>();
};

serving_processes::serving_processes(test::actor_world& world, std::shared_ptr<story> s, bool is_pool)
    : browser(std::make_unique<http_client>(std::move(s))) {
  auto& m = shared_models();
  scheduler_options options;
  options.limits = {.running_max = 6, .waiting_max = 64, .tokens_max = context_max};
  options.budget = {.rows_max = 64, .prompt_chunk_rows_max = 16};
  test::add_target(
      world, options, m.memory, [] { return shared_models().make(true); }, m.trie);
  world.add_worker(3, 4).add<draft_model>(6, "draft model", test::roomy, [](actor::actor_context& c) {
    std::vector<token> ends;
    for (token t = 0; t < static_cast<token>(shared_models().tokenizer->size()); ++t) {
      if (shared_models().tokenizer->is_end_of_generation(t)) ends.push_back(t);
    }
    return std::make_unique<draft_model>(
        c, std::make_unique<draft::small_model_runner>(
               draft::small_model_runner::limits{.prompt_chunk_rows_max = 24, .pages_count = pages_count},
               draft::small_model_runner::parts{.model = shared_models().make(false), .end_tokens = ends}));
  });
  services->http = http_where;
  auto& io = world.add_worker(1, 1);
  if (is_pool)
    add_pool(world);
  else
    add_model();
  auto& http = world.add_worker(1, 2);
  http.add<http_side>(8, "http", test::roomy, [this](actor::actor_context& c) {
    return std::make_unique<http_side>(c, actor::actor_ref<gateway>{gateway_where}, browser);
  });
  io.add<supervisor>(1, "supervisor", test::roomy, [](actor::actor_context& c) {
    std::vector<actor::restart_policy> groups;
    groups.emplace_back(actor::restart_strategy::one_for_one, actor::restart_limit{},
                        std::vector{gateway_where, http_where, placer_where, models_where});
    return std::make_unique<supervisor>(c, groups, gateway_where, [](const std::string&) {});
  });
  for (auto* const watched : {&io, &http}) watched->report_deaths_to(supervisor_where);
  io.add<gateway>(2, "gateway", test::roomy,
                  [all = services](actor::actor_context& c) { return std::make_unique<gateway>(c, all); });
}

void serving_processes::add_model() {
  const auto& m = shared_models();
  auto model = std::make_shared<served_model>();
  model->name = "tiny";
  model->answers = std::make_shared<answer_factory>(
      answer_factory::parts{.tokenizer = m.tokenizer,
                            .token_trie = m.trie,
                            .context_max = context_max,
                            .partners_for = [](draft::method how, actor::address client) -> result<session_partners> {
                              session_partners partners{.manager = {manager_where}, .client = client};
                              if (draft::asks_model(how)) partners.drafter = {drafter_where};
                              return partners;
                            }});
  model->prompts =
      std::make_shared<prompt_builder>(m.tokenizer, *jinja::chat_template::parse(std::string(short_template)));
  model->draft_defaults.how = draft::method::automatic;
  model->has_mtp = model::shape_of(*m.big).has_mtp();
  services->models->publish(model);
  services->manager = {manager_where};
}

void serving_processes::add_pool(test::actor_world& world) {
  services->manager = {placer_where};
  services->placer = {placer_where};
  world.worker_at(header_where).add<header_server>(10, "header server", test::roomy, [](actor::actor_context& c) {
    return std::make_unique<header_server>(c, shared_models().header);
  });
  auto& io = world.worker_at(placer_where);
  // The bridge reports the peers to an actor that starts.
  const auto tell_peers = [&world] {
    world.send(placer_where, actor::peer_state{2, true, {}, actor::encode(shared_models().card), 1});
  };
  const model_fetcher_options fetching{.shelf = services->models,
                                       .partners_for =
                                           [](const process_card& card, draft::method, actor::address client) {
                                             session_partners partners{.place = {.model = card.model},
                                                                       .client = client};
                                             partners.placer = {placer_where};
                                             return result<session_partners>(std::move(partners));
                                           },
                                       .draft_defaults = {.how = draft::method::lookup}};
  io.add<model_fetcher>(12, "model fetcher", test::roomy, [=](actor::actor_context& c) {
    tell_peers();
    return std::make_unique<model_fetcher>(c, fetching);
  });
  const placer_options placing{.layout = {.manager_worker = actor::worker_of(manager_where),
                                          .drafter_worker = actor::worker_of(drafter_where),
                                          .manager = actor::number_of(manager_where),
                                          .drafter = actor::number_of(drafter_where),
                                          .header_worker = actor::worker_of(header_where),
                                          .header = actor::number_of(header_where)},
                               .models = models_where};
  io.add<placer>(11, "placer", test::roomy, [=](actor::actor_context& c) {
    tell_peers();
    return std::make_unique<placer>(c, placing);
  });
}

enum class victim : std::uint8_t {
  nobody,
  cache_manager,
  target,
  drafter,
  gateway,
  http,
  placer,
  model_fetcher,
  session,
  edit_session
};
constexpr std::array<std::string_view, 10> victim_names = {"nobody",  "cache manager", "target", "drafter",
                                                           "gateway", "http",          "placer", "model fetcher",
                                                           "session", "edit session"};
constexpr std::array<actor::address, 8> permanent_victims = {
    {{}, manager_where, target_where, drafter_where, gateway_where, http_where, placer_where, models_where}};

struct outcome {
  bool is_over = false;
  std::size_t messages = 0;
  std::vector<answer> answers;
  bool has_edit_session = false;
};

struct named_story {
  std::string name;
  std::vector<request> requests;
  bool is_pool = false;
  bool is_hybrid = false;  // the target model has layers that keep a state, and one that drafts
};

/// Whether the frame is a prefill-only round of an edit session.
bool is_prefill(const actor::frame& f) {
  if (f.head.id != verify_run::id) return false;
  return actor::decode<verify_run>(f.body)->round.kind == scheduler::round_kind::prefill;
}

/// Kills the victim after the given number of messages, counted from the first request.
outcome play(const named_story& told, victim who, std::size_t after) {
  configure_log(log_level::off, log_format::text);
  serves_hybrid = told.is_hybrid;
  test::actor_world world(7);
  auto s = std::make_shared<story>(story{told.requests, {}});
  outcome out;
  actor::address latest_session, latest_edit_session;  // the latest ones that sent a message
  bool has_begun = false;
  world.on_wire = [&](actor::frame& f) {
    has_begun = has_begun || f.head.id == http_arrived::id;
    if (has_begun && !s->is_over()) ++out.messages;
    const bool is_temporary = actor::number_of(f.head.from) >= temporary_numbers_begin;
    if (actor::node_of(f.head.from) != actor::node_of(gateway_where) || !is_temporary) return true;
    const auto& id = f.head.id;
    if (id == session_shown::id || id == file_shown::id || is_prefill(f)) latest_edit_session = f.head.from;
    if (f.head.from != latest_edit_session) latest_session = f.head.from;
    return true;
  };
  const serving_processes processes(world, s, told.is_pool);
  bool is_dead = who == victim::nobody;
  const auto strike = [&] {
    processes.browser->step(world);
    if (is_dead || out.messages < after) return;
    const auto where = who == victim::session        ? latest_session
                       : who == victim::edit_session ? latest_edit_session
                                                     : permanent_victims[static_cast<std::size_t>(who)];
    if (where.value == 0) return;
    // A worker process has no supervisor here.
    if (actor::process_of(where) == actor::process_of(gateway_where))
      world.worker_at(where).kill(where);
    else
      world.restart(where);
    is_dead = true;
  };
  out.is_over = world.run_until([&] { return s->is_over(); }, story_max, strike);
  out.answers = s->answers;
  out.has_edit_session = latest_edit_session.value != 0;
  return out;
}

/// The actors that can be killed in this story.
std::vector<victim> victims_of(const named_story& told, const outcome& calm) {
  std::vector<victim> all;
  for (std::size_t i = 1; i < victim_names.size(); ++i) {
    const auto who = static_cast<victim>(i);
    if (who == victim::edit_session && !calm.has_edit_session) continue;
    if ((who == victim::placer || who == victim::model_fetcher) && !told.is_pool) continue;
    all.push_back(who);
  }
  return all;
}

json chat(json more) {
  json body = {{"messages", {{{"role", "user"}, {"content", "abc abd abe abc abd abe"}}}}, {"max_tokens", 24}};
  body.update(more);
  return body;
}

const std::vector<named_story>& stories() {
  static const std::vector<request> live = {
      {"POST", "/v1/redline/sessions", {{"files", {{{"path", "a.txt"}, {"text", "abc\nabd\nabe\nabc\n"}}}}}},
      {"POST",
       "/v1/redline/sessions/{id}/complete",
       {{"path", "a.txt"}, {"position", {{"line", 2}, {"character", 1}}}, {"max_tokens", 12}, {"temperature", 0}}},
      {"PATCH",
       "/v1/redline/sessions/{id}/files/a.txt",
       {{"version", 2}, {"edits", json::array({{{"bytes", {{"start", 4}, {"end", 7}}}, {"text", "new words"}}})}}},
      {"POST",
       "/v1/redline/sessions/{id}/complete",
       {{"path", "a.txt"}, {"position", {{"line", 3}, {"character", 2}}}, {"max_tokens", 12}, {"temperature", 0}}}};
  static const json tools = {{{"type", "function"},
                              {"function",
                               {{"name", "write"},
                                {"parameters",
                                 {{"type", "object"},
                                  {"properties", {{"text", {{"type", "string"}, {"maxLength", 8}}}}},
                                  {"required", {"text"}},
                                  {"additionalProperties", false}}}}}}};
  static const std::vector<named_story> all = {
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
      {"streamed",
       {{"POST", "/v1/chat/completions",
         chat({{"temperature", 0}, {"stream", true}, {"redline", {{"speculation", {{"method", "lookup"}}}}}})}}},
      {"tools",
       {{"POST", "/v1/chat/completions",
         chat({{"temperature", 0}, {"max_tokens", 60}, {"tools", tools}, {"tool_choice", "required"}})}}},
      {"streamed_tools",
       {{"POST", "/v1/chat/completions",
         chat({{"temperature", 0},
               {"max_tokens", 60},
               {"tools", tools},
               {"tool_choice", "required"},
               {"stream", true}})}}},
      {"live", live},
      {"pool", {{"POST", "/v1/completions", {{"prompt", "abcabdabe"}, {"max_tokens", 24}, {"temperature", 0}}}}, true},
      {"live_in_a_pool", live, true},
      {"of_a_hybrid",
       {{"POST", "/v1/chat/completions",
         chat({{"temperature", 0.8}, {"seed", 3}, {"frequency_penalty", 0.5}, {"n", 2}})}},
       false,
       true},
      {"of_a_hybrid_by_its_mtp_layer",
       {{"POST", "/v1/chat/completions",
         chat({{"temperature", 0}, {"stream", true}, {"redline", {{"speculation", {{"method", "mtp"}}}}}})}},
       false,
       true},
      {"of_a_hybrid_in_a_pool",
       {{"POST", "/v1/completions", {{"prompt", "abcabdabe"}, {"max_tokens", 24}, {"temperature", 0}}}},
       true,
       true},
  };
  return all;
}

std::size_t stride() {
  if (const char* text = std::getenv("REDLINE_RESTART_STRIDE")) return std::max(1, std::atoi(text));
  return test::rounds(5, 47);
}

class restart_matrix : public testing::TestWithParam<std::size_t> {};

/// Returns nullopt if the client may receive this error when the victim dies, or else what is wrong with it.
std::optional<std::string> find_fault(const answer& a, victim who) {
  const json body = json::parse(a.body, nullptr, false);
  if (!body.is_object() || !body.contains("error") || body["error"].value("message", "").empty()) return "no reason";
  // For most victims, only a request that comes before the target model is known may be refused.
  const bool is_lost = who == victim::gateway || who == victim::session || who == victim::http;
  if (is_lost || a.status == 503 || (who == victim::edit_session && a.status == 404)) return std::nullopt;
  return "not this error";
}

TEST_P(restart_matrix, gives_the_same_bytes_or_one_clear_error_when_an_actor_dies) {
  const named_story& told = stories()[GetParam()];
  const outcome calm = play(told, victim::nobody, 0);
  ASSERT_TRUE(calm.is_over);
  for (const answer& a : calm.answers) ASSERT_LT(a.status, 300u) << told.name << ": " << a.body;
  const json last = essence(calm.answers.back());
  ASSERT_TRUE(last.contains("said") && !last["reason"][0].is_null()) << calm.answers.back().body;
  std::size_t same = 0, failed = 0;
  for (const victim who : victims_of(told, calm)) {
    for (std::size_t after = 1; after < calm.messages; after += stride()) {
      const std::string where = told.name + ", " + std::string(victim_names[static_cast<std::size_t>(who)]) +
                                " after " + std::to_string(after);
      const outcome o = play(told, who, after);
      ASSERT_TRUE(o.is_over) << where << ": no answer";
      for (std::size_t i = 0; i < o.answers.size(); ++i) {
        const answer& a = o.answers[i];
        if (a.status < 400) {
          EXPECT_EQ(essence(a), essence(calm.answers[i])) << where << ", request " << i;
          continue;
        }
        ++failed;
        const auto fault = find_fault(a, who);
        EXPECT_FALSE(fault) << where << ": " << *fault << ": " << a.status << " " << a.body;
        if (a.streamed.empty()) continue;
        const auto text = a.streamed.substr(0, a.streamed.find("data: {\"error\""));
        const json begun = essence(join_events({200, {}, text}))["said"][0], whole = last["said"][0];
        EXPECT_TRUE(whole.get<std::string>().starts_with(begun.get<std::string>())) << where << ": " << begun;
      }
      same += o.answers.back().status < 400 ? 1 : 0;
    }
  }
  std::printf("%s: %zu messages; %zu runs gave the same bytes, %zu one error\n", told.name.c_str(), calm.messages, same,
              failed);
  EXPECT_GT(3 * same, failed) << "half of all runs give the same bytes; with a long stride perhaps a third";
}

/// What remains after an actor of the gateway's process has died.
class restart_matrix_leftovers : public testing::Test {
 protected:
  /// Kills `who` after `after` messages from the first round on, when the client has all but its last answer.
  void strike(const std::vector<request>& requests, actor::address who, std::size_t after) {
    configure_log(log_level::off, log_format::text);
    serves_hybrid = false;
    told = std::make_shared<story>(story{requests, {}});
    world.on_wire = [this](actor::frame& f) {
      messages += f.head.id == verify_run::id || messages > 0 ? 1 : 0;
      asked += f.head.id == verify_run::id ? 1 : 0;
      released += f.head.id == release_sequence::id ? 1 : 0;
      return true;
    };
    processes.emplace(world, told, false);
    const auto step = [&] { processes->browser->step(world); };
    const auto is_time = [&] { return messages >= after && told->answers.size() + 1 >= requests.size(); };
    ASSERT_TRUE(world.run_until(is_time, story_max, step));
    EXPECT_EQ(released, 0U);
    world.worker_at(who).kill(who);
    ASSERT_TRUE(world.run_until([&] { return told->is_over(); }, story_max, step));
    EXPECT_EQ(told->answers.back().status, 503U);
    world.run_until([] { return false; }, second, step);
  }
  void expect_silence() {
    asked = 0;
    world.run_for(70 * second);  // longer than an idle edit session stays silent
    EXPECT_EQ(asked, 0U);
  }

  static constexpr microseconds second{1'000'000};
  test::actor_world world{7};
  std::shared_ptr<story> told;
  std::optional<serving_processes> processes;
  std::size_t messages = 0, asked = 0, released = 0;
};

/// The number of messages after the first round, and the actor to kill.
class restart_matrix_endless : public restart_matrix_leftovers,
                               public testing::WithParamInterface<std::pair<std::size_t, actor::address>> {};

TEST_P(restart_matrix_endless, answers_end_that_nobody_waits_for) {
  const json endless = {
      {"prompt", "abcabdabeabcabdabe"},
      {"temperature", 0},
      {"max_tokens", 1'000'000},
      {"ignore_eos", true},
      {"n", 2},
      {"redline", {{"eviction", {{"policy", "reevaluate"}, {"n_keep", 4}, {"n_ctx", 40}, {"n_discard", 10}}}}}};
  strike({{"POST", "/v1/completions", endless}}, GetParam().second, GetParam().first);
  EXPECT_EQ(released, 2U) << "no sequence is left";
  expect_silence();
}

INSTANTIATE_TEST_SUITE_P(messages, restart_matrix_endless,
                         testing::Values(std::pair{40, gateway_where}, std::pair{80, gateway_where},
                                         std::pair{200, gateway_where}, std::pair{40, http_where},
                                         std::pair{80, http_where}, std::pair{200, http_where}));

TEST_F(restart_matrix_leftovers, edit_sessions_of_a_gateway_that_died_end) {
  const named_story& live =
      *std::find_if(stories().begin(), stories().end(), [](const auto& s) { return s.name == "live"; });
  strike({live.requests[0], live.requests[1], live.requests[3]}, gateway_where, 1);
  world.run_for(10 * second);
  EXPECT_EQ(released, 1U) << "the files and their KV are released";
  expect_silence();
}

INSTANTIATE_TEST_SUITE_P(stories, restart_matrix, testing::Range<std::size_t>(0, 14),
                         [](const auto& story) { return stories()[story.param].name; });

}  // namespace
}  // namespace redline::actors
