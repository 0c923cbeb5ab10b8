// The gateway alone: the test writes its incoming messages by hand and reads its outgoing ones from the wire.

#include "actors/http/gateway.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <nlohmann/json.hpp>

#include "actors/http/studio/studio_files.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/version.hpp"
#include "tests/support/gzip_files.hpp"
#include "tests/support/hand_link.hpp"
#include "tests/support/test_data.hpp"
#include "tests/support/tiny_model.hpp"
#include "tests/support/tool_templates.hpp"

namespace redline::actors {
namespace {

using json = nlohmann::json;
using ::testing::HasSubstr;

constexpr auto gateway_where = actor::make_address(1, 1, 2);
constexpr auto http_where = actor::make_address(1, 2, 8);
constexpr auto manager_where = actor::make_address(2, 1, 4);
constexpr microseconds calendar_cost{50'000};

/// Each look at the calendar advances the time, so that handlers take measurable time.
class slow_environment final : public environment {
 public:
  [[nodiscard]] instant now() const override { return inner_.now(); }
  [[nodiscard]] std::int64_t unix_seconds() const override {
    inner_.advance(calendar_cost);
    return inner_.unix_seconds();
  }
  std::uint64_t random() override { return inner_.random(); }
  void advance(microseconds by) { inner_.advance(by); }

 private:
  mutable test::virtual_environment inner_;
};

constexpr auto placer_where = actor::make_address(9, 1, 11);
bool is_in_pool = false;  // if true, sessions need a placement

class gateway_alone : public testing::Test {
 protected:
  void SetUp() override {
    configure_log(log_level::off, log_format::text);
    static const auto file = test::make_tiny_model({.context = 256}).file();
    tokenizer = *text::tokenizer::from_file(*file);
    auto s = services = std::make_shared<gateway_services>();
    s->models->publish(make_model("tiny", tokenizer));
    s->manager = {manager_where};
    s->http = http_where;
    s->on_ready = [this] { ++became_ready; };
    s->on_drained = [this] { ++drained; };
    core.add<gateway>(2, "gateway", {64, 64}, [s](actor::actor_context& c) { return std::make_unique<gateway>(c, s); });
    tell(scheduler_report{.ready = true}, manager_where);
    run();
    sent.clear();
  }

  /// A digest of 1 is that of the initial model.
  static std::shared_ptr<served_model> make_model(const std::string& name, std::shared_ptr<const text::tokenizer> by,
                                                  std::uint64_t digest = 1) {
    auto model = std::make_shared<served_model>();
    model->name = name;
    model->digest = digest;
    model->fingerprint = make_fingerprint(digest, numerics_id("exact"));
    model->prompts = std::make_shared<prompt_builder>(*prompt_builder::make(by));
    model->answers = std::make_shared<answer_factory>(
        answer_factory::parts{.tokenizer = std::move(by),
                              .context_max = 256,
                              .partners_for = [](draft::method, actor::address client) -> result<session_partners> {
                                if (is_in_pool) return session_partners{.placer = {placer_where}, .client = client};
                                return session_partners{.manager = {manager_where}, .client = client};
                              }});
    return model;
  }
  void TearDown() override { is_in_pool = false; }

  template<actor::message M>
  void tell(const M& m, actor::address from = http_where) {
    core.deliver(test::frame_of(gateway_where, from, m));
  }
  /// Runs all actors of the worker until they wait, and keeps their outgoing messages.
  void run() {
    do {
      while (core.run_ready()) {
      }
      std::deque<actor::frame> posted;
      posted.swap(link.sent);
      for (auto& f : posted) {
        if (f.head.id == actor::job_done::id) ++jobs_done;
        if (actor::node_of(f.head.to) == actor::node_of(gateway_where))
          core.deliver(std::move(f));
        else
          sent.push_back(std::move(f));
      }
    } while (core.run_ready() || !link.sent.empty());
  }
  void pass(microseconds time) {
    env.advance(time);
    core.fire_timers();
    run();
  }

  std::uint64_t ask(const std::string& method, const std::string& path, const json& body = {}) {
    header_list headers = more_headers;
    if (!key.empty()) headers.emplace_back("Authorization", "Bearer " + key);
    tell(http_arrived{.exchange = ++exchange,
                      .method = method,
                      .path = path,
                      .headers = headers,
                      .body = body.is_null() ? "" : body.dump()});
    return exchange;
  }
  std::uint64_t ask_for_text(bool stream = false) {
    return ask("POST", "/v1/chat/completions",
               {{"messages", {{{"role", "user"}, {"content", "hi"}}}}, {"stream", stream}, {"max_tokens", 8}});
  }
  template<actor::message M>
  std::vector<M> all() const {
    std::vector<M> found;
    for (const auto& f : sent) {
      if (f.head.id == M::id) found.push_back(*actor::decode<M>(f.body));
    }
    return found;
  }
  std::optional<http_respond> answer_to(std::uint64_t id) const {
    for (const auto& m : all<http_respond>()) {
      if (m.exchange == id) return m;
    }
    return std::nullopt;
  }
  std::uint32_t status_of(std::uint64_t id) const { return answer_to(id).value_or(http_respond{.status = 0}).status; }
  std::uint32_t call(const std::string& method, const std::string& path) {
    const auto id = ask(method, path);
    run();
    return status_of(id);
  }
  std::string metrics() {
    const auto id = ask("GET", "/metrics");
    run();
    return answer_to(id)->body;
  }
  /// Returns the value of a series.
  double metric(const std::string& series) {
    const std::string text = metrics();
    const auto at = text.find("\n" + series + " ");
    EXPECT_NE(at, std::string::npos) << series << " in\n" << text;
    return at == std::string::npos ? -1 : std::stod(text.substr(at + series.size() + 2));
  }
  /// Returns the session of the only answer in progress, whose sequence has the session's number.
  session_id session_in_progress() const { return {all<verify_run>().at(0).round.sequence.value}; }
  std::vector<session_id> all_sessions() const {
    std::vector<session_id> found;
    for (const auto& m : all<verify_run>()) found.push_back({m.round.sequence.value});
    return found;
  }
  actor::address address_of(session_id) const {
    for (const auto& f : sent) {
      if (f.head.id == verify_run::id) return f.head.from;
    }
    return {};
  }

  slow_environment env;
  test::hand_link link;
  actor::worker core{1, 1, link, env};
  std::deque<actor::frame> sent;
  std::shared_ptr<const text::tokenizer> tokenizer;
  std::shared_ptr<gateway_services> services;
  std::string key;  // the key that requests carry
  header_list more_headers;
  std::uint64_t exchange = 0;
  int became_ready = 0;
  int drained = 0;
  int jobs_done = 0;
};

TEST_F(gateway_alone, one_tenant_cannot_take_the_places_of_another) {
  services->sessions_max = 4;
  const std::vector<std::string> keys{"flood:sk-flooding-key", "small:sk-small-key"};
  services->keys->replace(*api_keys::load(keys));
  const auto is_refused = [&] {
    const auto id = ask_for_text();
    run();
    const auto answer = answer_to(id);
    EXPECT_TRUE(!answer || answer->status == 429);
    return answer.has_value();
  };
  key = "sk-flooding-key";
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(is_refused()) << "a single tenant may use everything";
  EXPECT_TRUE(is_refused());
  key = "sk-small-key";
  EXPECT_FALSE(is_refused());
  EXPECT_FALSE(is_refused());
  EXPECT_TRUE(is_refused()) << "more than its share";
  key = "sk-flooding-key";
  EXPECT_TRUE(is_refused());
}

TEST_F(gateway_alone, counts_the_time_to_the_first_token_from_the_arrival) {
  ask_for_text();
  run();
  tell(session_text{.session = session_in_progress(), .text = "x", .tokens = {1}});
  run();
  // The gateway looks at the calendar once, for the chat template and the head of the response.
  EXPECT_GE(metric("redline_time_to_first_token_seconds_sum"), 0.05);
  EXPECT_EQ(metric("redline_time_to_first_token_seconds_count"), 1);
}

/// Requests an answer with many alternatives for each token.
const json with_alternatives{{"messages", {{{"role", "user"}, {"content", "hi"}}}},
                             {"max_tokens", 100},
                             {"logprobs", true},
                             {"top_logprobs", 20}};

/// Reports four tokens of such an answer.
session_text reported_text(session_id session) {
  session_text m{.session = session, .text = "abcd", .tokens = {1, 2, 3, 4}};
  for (int i = 0; i < 4; ++i) {
    m.logprobs.push_back({.logprob = -1.0F, .top = {}});
    for (token t = 0; t < 20; ++t) m.logprobs.back().top.push_back({t, -2.0F});
  }
  return m;
}

TEST_F(gateway_alone, ends_a_whole_answer_as_soon_as_it_is_too_large) {
  services->answer_bytes_max = 40'000;
  const auto id = ask("POST", "/v1/chat/completions",
                      {{"messages", {{{"role", "user"}, {"content", "hi"}}}},
                       {"n", 8},
                       {"max_tokens", 100},
                       {"logprobs", true},
                       {"top_logprobs", 20}});
  run();
  std::vector<session_id> sessions;
  for (const auto& m : all<verify_run>()) sessions.push_back({m.round.sequence.value});
  ASSERT_EQ(sessions.size(), 8U);
  int told = 0;
  for (; told < 100 && !answer_to(id); ++told) {
    tell(reported_text(sessions[static_cast<std::size_t>(told) % 8]));
    run();
  }
  // A token takes about 700 bytes: 84 of 35 letters, and 3 for each byte of its text.
  EXPECT_GE(told, 2);
  EXPECT_LE(told, 15) << "of the 100 expected tokens";
  ASSERT_TRUE(answer_to(id));
  EXPECT_EQ(status_of(id), 500U);
  EXPECT_THAT(answer_to(id)->body, HasSubstr("answer_too_large"));
  EXPECT_EQ(all<release_sequence>().size(), 8U) << "nothing continues for it";
  EXPECT_EQ(metric("redline_answers_running"), 0);
}

TEST_F(gateway_alone, writes_a_long_answer_in_a_job) {
  for (const bool is_long : {false, true}) {
    sent.clear();
    jobs_done = 0;
    const auto id = ask("POST", "/v1/chat/completions", with_alternatives);
    run();
    EXPECT_EQ(jobs_done, 1) << "it is being read";
    const auto session = session_in_progress();
    for (int i = 0; i < (is_long ? 10 : 1); ++i) tell(reported_text(session));
    tell(session_finished{.session = session, .reason = finish_reason::stop});
    run();
    EXPECT_EQ(jobs_done, is_long ? 2 : 1);
    ASSERT_EQ(status_of(id), 200U);
    const auto body = json::parse(answer_to(id)->body);
    const auto& content = body["choices"][0]["logprobs"]["content"];
    ASSERT_EQ(content.size(), is_long ? 40U : 4U);
    EXPECT_EQ(content[3]["top_logprobs"].size(), 20U);
    EXPECT_EQ(body["choices"][0]["finish_reason"], "stop");
  }
  EXPECT_EQ(metric("redline_requests_total{reason=\"stop\"}"), 2);
}

TEST_F(gateway_alone, does_not_write_a_long_answer_whose_client_left) {
  const auto id = ask("POST", "/v1/chat/completions", with_alternatives);
  run();
  const auto session = session_in_progress();
  for (int i = 0; i < 10; ++i) tell(reported_text(session));
  tell(session_finished{.session = session, .reason = finish_reason::stop});
  core.run_ready();
  tell(http_closed{id});
  run();
  EXPECT_FALSE(answer_to(id));
}

TEST_F(gateway_alone, refuses_to_repeat_prompts_without_bound) {
  services->answer_bytes_max = 10'000;
  const auto ask_with = [&](const json& more) {
    json body{{"prompt", std::string(200, 'x')}, {"max_tokens", 4}, {"n", 32}};
    body.update(more);
    const auto id = ask("POST", "/v1/completions", body);
    run();
    return answer_to(id);
  };
  EXPECT_FALSE(ask_with({{"echo", true}}));
  const auto echoed = ask_with({{"echo", true}, {"prompt", std::string(400, 'x')}});
  ASSERT_TRUE(echoed);
  EXPECT_THAT(echoed->body, HasSubstr("answer_too_large"));
  const auto ids = ask_with({{"return_token_ids", true}, {"prompt", json::array({std::vector<int>(200, 5)})}});
  ASSERT_TRUE(ids);
  EXPECT_THAT(ids->body, HasSubstr("answer_too_large"));
}

TEST_F(gateway_alone, requests_in_work_hold_so_many_bytes_of_a_tenant_and_in_sum) {
  services->request_limits = {.tenant_bytes_max = 400'000, .bytes_max = 700'000};
  const std::vector<std::string> keys{"ann:sk-key-of-ann", "bob:sk-key-of-bob", "cid:sk-key-of-cid"};
  services->keys->replace(*api_keys::load(keys));
  const auto ask_as = [&](const std::string& name, const json& more) {
    key = "sk-key-of-" + name;
    json body{{"prompt", "xyz"}, {"max_tokens", 4}, {"n", 8}};
    if (more.is_object()) body.update(more);
    const auto id = ask("POST", "/v1/completions", body);
    run();
    return answer_to(id).value_or(http_respond{.status = 0});
  };
  // Eight answers take about 260,000 bytes.
  EXPECT_EQ(ask_as("ann", {}).status, 0U);
  const auto own = ask_as("ann", {});
  EXPECT_EQ(own.status, 429U);
  EXPECT_THAT(own.body, HasSubstr("400000 bytes for bodies, prompts and answers (--requests-mib)"));
  EXPECT_EQ(ask_as("bob", {}).status, 0U);
  const auto all = ask_as("cid", {});
  EXPECT_EQ(all.status, 503U);
  EXPECT_THAT(all.body, HasSubstr("700000 bytes"));
  const auto alone = ask_as("cid", {{"prompt", std::string(100'000, 'x')}, {"n", 1}});
  EXPECT_EQ(alone.status, 413U) << "while it is read";
  EXPECT_EQ(metric("redline_request_bytes_refused_total"), 3);
  EXPECT_GT(metric("redline_request_bytes"), 500'000);
  for (const auto& m : all_sessions()) tell(session_finished{.session = m, .reason = finish_reason::stop});
  run();
  EXPECT_EQ(metric("redline_request_bytes"), 0);
  EXPECT_EQ(ask_as("cid", {}).status, 0U);
}

TEST_F(gateway_alone, ends_an_answer_that_would_hold_more_than_requests_may) {
  services->request_limits = {.tenant_bytes_max = 400'000, .bytes_max = 400'000};
  const auto id = ask("POST", "/v1/chat/completions", with_alternatives);
  run();
  const auto session = session_in_progress();
  int told = 0;
  for (; told < 2000 && !answer_to(id); ++told) {
    tell(reported_text(session));
    run();
  }
  EXPECT_LT(told, 800) << "with about 800 bytes each";
  EXPECT_EQ(status_of(id), 413U);
  EXPECT_EQ(all<release_sequence>().size(), 1U);
  EXPECT_EQ(metric("redline_request_bytes"), 0);
}

TEST_F(gateway_alone, copies_no_prompt_of_megabytes_for_many_answers) {
  const auto id = ask("POST", "/v1/completions",
                      {{"prompt", json::array({std::vector<int>(140'000, 5)})}, {"max_tokens", 4}, {"n", 32}});
  run();
  EXPECT_EQ(status_of(id), 400U);
  EXPECT_THAT(answer_to(id)->body, HasSubstr("4480000; expected at most 4194304"));
}

TEST_F(gateway_alone, cancels_a_session_that_it_does_not_know) {
  constexpr auto stranger = actor::make_address(1, 3, 1005);
  tell(session_text{.session = {77}, .text = "x", .tokens = {1}}, stranger);
  tell(session_admitted{.session = {78}}, stranger);
  run();
  EXPECT_EQ(all<cancel_session>().size(), 2U);
}

TEST_F(gateway_alone, writes_its_metrics_in_a_job_that_no_tenant_holds_up) {
  const auto id = ask("GET", "/metrics");
  while (core.run_ready()) {
  }
  EXPECT_FALSE(answer_to(id)) << "the handler only checks";
  run();
  EXPECT_EQ(jobs_done, 1);
  ASSERT_EQ(status_of(id), 200U);
  EXPECT_THAT(answer_to(id)->body, HasSubstr("redline_ready 1"));
}

TEST_F(gateway_alone, says_why_a_worker_may_not_take_part) {
  tell(actor::peer_state{2, false, "it has another model file; use the same --model for both"}, {});
  run();
  const auto id = ask("GET", "/readyz");
  run();
  ASSERT_TRUE(answer_to(id));
  EXPECT_EQ(answer_to(id)->status, 503u);
  EXPECT_THAT(answer_to(id)->body, HasSubstr("another model file"));
  tell(scheduler_report{.ready = false, .why_not = "the target model has 3 pages"}, manager_where);
  run();
  const auto later = ask("GET", "/readyz");
  run();
  EXPECT_THAT(answer_to(later)->body, HasSubstr("3 pages"));
}

TEST_F(gateway_alone, does_not_serve_a_request_whose_client_left_before_it_was_read) {
  const auto id = ask_for_text();
  tell(http_closed{id});  // control messages overtake other ones
  run();
  EXPECT_TRUE(all<verify_run>().empty());
  EXPECT_FALSE(answer_to(id));
  ask_for_text();
  run();
  EXPECT_EQ(all<verify_run>().size(), 1U) << "the next one is served";
}

TEST_F(gateway_alone, ends_the_session_of_a_client_that_leaves) {
  const auto id = ask_for_text();
  run();
  const auto session = session_in_progress();
  tell(http_closed{id});
  run();
  ASSERT_EQ(all<release_sequence>().size(), 1U);
  EXPECT_EQ(all<release_sequence>()[0].sequence.value, session.value);
  EXPECT_FALSE(answer_to(id));
  EXPECT_EQ(metric("redline_requests_total{reason=\"abort\"}"), 1);
}

TEST_F(gateway_alone, drains_when_the_last_answer_is_over) {
  const auto id = ask_for_text();
  run();
  tell(drain_gateway{});
  run();
  EXPECT_EQ(all<http_drain>().size(), 1U);
  EXPECT_EQ(call("GET", "/readyz"), 503U);
  EXPECT_EQ(call("GET", "/livez"), 200U);
  EXPECT_EQ(call("GET", "/metrics"), 200U);
  EXPECT_EQ(call("GET", "/v1/models"), 503U);
  EXPECT_THAT(answer_to(exchange)->headers,
              ::testing::Contains(std::pair<std::string, std::string>("Retry-After", "1")));
  const auto late = ask_for_text();
  run();
  EXPECT_EQ(status_of(late), 503U);
  EXPECT_THAT(answer_to(late)->body, HasSubstr("draining"));
  pass(microseconds{600'000});
  EXPECT_EQ(drained, 0) << "an answer is in progress";
  tell(session_finished{.session = session_in_progress()});
  run();
  EXPECT_EQ(status_of(id), 200U);
  pass(microseconds{600'000});
  pass(microseconds{600'000});
  EXPECT_EQ(drained, 1);
}

TEST_F(gateway_alone, tells_once_that_it_is_ready) {
  EXPECT_EQ(became_ready, 1);
  tell(actor::peer_state{.process = 2, .reachable = false});
  tell(scheduler_report{.ready = true}, manager_where);
  run();
  EXPECT_EQ(became_ready, 1);
}

TEST_F(gateway_alone, is_not_ready_while_the_schedulers_process_is_lost) {
  EXPECT_EQ(call("GET", "/readyz"), 200U);
  tell(actor::peer_state{.process = 2, .reachable = false});
  EXPECT_EQ(call("GET", "/readyz"), 503U);
  const auto refused = ask_for_text();
  run();
  EXPECT_EQ(status_of(refused), 503U);
  tell(scheduler_report{.ready = true}, manager_where);
  EXPECT_EQ(call("GET", "/readyz"), 200U);
  tell(actor::peer_state{.process = 7, .reachable = false});
  EXPECT_EQ(call("GET", "/readyz"), 200U) << "a different process";
  pass(microseconds{6'000'000});
  EXPECT_EQ(call("GET", "/readyz"), 503U) << "the scheduler has been silent";
}

TEST_F(gateway_alone, drains_once_however_often_it_is_told) {
  ask_for_text();
  run();
  for (int i = 0; i < 3; ++i) tell(drain_gateway{});
  run();
  EXPECT_EQ(drained, 0) << "an answer is in progress";
  EXPECT_EQ(call("GET", "/livez"), 200U);
  tell(session_finished{.session = session_in_progress(), .reason = finish_reason::stop});
  pass(microseconds{1'000'000});
  EXPECT_EQ(drained, 1);
  tell(drain_gateway{});
  pass(microseconds{1'000'000});
  EXPECT_EQ(drained, 1);
  EXPECT_EQ(call("GET", "/livez"), 200U);
  EXPECT_EQ(call("GET", "/readyz"), 503U);
}

TEST_F(gateway_alone, ends_all_answers_with_an_error_when_a_drain_takes_too_long) {
  const auto whole = ask_for_text();
  run();
  const auto streamed = ask_for_text(true);
  run();
  tell(session_text{.session = {all<verify_run>().at(1).round.sequence.value}, .text = "x", .tokens = {1}});
  run();
  tell(cancel_everything{});
  run();
  EXPECT_EQ(status_of(whole), 503U);
  const auto events = all<http_stream>();
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events.back().exchange, streamed);
  EXPECT_TRUE(events.back().end);
  EXPECT_THAT(events.back().data, HasSubstr("shutting down"));
  EXPECT_EQ(all<release_sequence>().size(), 2U);
  EXPECT_EQ(metric("redline_answers_running"), 0);
}

TEST_F(gateway_alone, ends_requests_that_are_being_read_when_a_drain_takes_too_long) {
  const auto id = ask_for_text();
  core.run_ready();  // the request is read, and the message about it is in flight
  tell(cancel_everything{});
  run();
  EXPECT_EQ(status_of(id), 503U);
  EXPECT_TRUE(all<verify_run>().empty());
}

TEST_F(gateway_alone, reads_nothing_while_it_is_not_ready) {
  tell(actor::peer_state{.process = 2, .reachable = false});
  const auto id = ask("POST", "/v1/chat/completions", {{"messages", "no conversation"}});
  run();
  EXPECT_EQ(status_of(id), 503U) << "before the request is read";
}

TEST_F(gateway_alone, hears_reports_only_of_whom_it_asks) {
  tell(scheduler_report{.ready = false, .tokens_max = 1}, actor::make_address(7, 1, 4));
  run();
  EXPECT_EQ(call("GET", "/readyz"), 200U);
}

TEST_F(gateway_alone, asks_for_one_place_for_the_requests_of_one_session_key) {
  is_in_pool = true;
  const auto place_of = [&](json more, const std::string& header = {}) {
    sent.clear();
    more_headers.clear();
    if (!header.empty()) more_headers.emplace_back("x-session-id", header);
    more["messages"] = {{{"role", "user"}, {"content", "hi"}}};
    ask("POST", "/v1/chat/completions", more);
    run();
    const auto asked = all<place_session>();
    EXPECT_EQ(asked.size(), 1U);
    return asked.empty() ? 0 : asked.front().affinity;
  };
  const auto mine = place_of({{"prompt_cache_key", "a"}});
  EXPECT_NE(mine, 0U);
  EXPECT_EQ(place_of({{"prompt_cache_key", "a"}}), mine);
  EXPECT_EQ(place_of({}, "a"), mine) << "the header says the same";
  EXPECT_NE(place_of({{"prompt_cache_key", "b"}}), mine);
  EXPECT_EQ(place_of({}), 0U);
}

TEST_F(gateway_alone, fails_a_request_whose_session_died) {
  const auto id = ask_for_text();
  run();
  tell(actor::actor_down{.who = address_of(session_in_progress())});
  run();
  EXPECT_EQ(status_of(id), 503U);
  EXPECT_THAT(answer_to(id)->body, HasSubstr("session_lost"));
}

TEST_F(gateway_alone, ends_an_exchange_whose_answer_could_not_be_delivered) {
  const auto id = ask("GET", "/v1/models");
  run();
  tell(actor::undeliverable{http_where, http_respond::id, {errc::mailbox_full, "no room"}, id});
  run();
  ASSERT_EQ(all<http_fail>().size(), 1U);
  EXPECT_EQ(all<http_fail>()[0].exchange, id);
  EXPECT_EQ(all<http_fail>()[0].status, 500U);
  EXPECT_THAT(all<http_fail>()[0].error, HasSubstr("server_error"));
  tell(actor::undeliverable{http_where, http_fail::id, {errc::mailbox_full, "no room"}, id});
  run();
  EXPECT_EQ(all<http_fail>().size(), 1U) << "once is enough";
}

TEST_F(gateway_alone, ends_the_session_of_a_stream_of_which_a_part_was_lost) {
  const auto id = ask_for_text(true);
  run();
  tell(session_text{.session = session_in_progress(), .text = "x", .tokens = {1}});
  run();
  tell(actor::undeliverable{http_where, http_stream::id, {errc::mailbox_full, "no room"}, id});
  run();
  EXPECT_EQ(all<release_sequence>().size(), 1U);
  ASSERT_EQ(all<http_fail>().size(), 1U);
  EXPECT_EQ(all<http_fail>()[0].exchange, id);
  EXPECT_EQ(metric("redline_requests_total{reason=\"error\"}"), 1);
}

/// The events of an exchange, one string for each.
std::vector<std::string> events_of(const std::vector<http_stream>& parts, std::uint64_t exchange) {
  std::string all;
  for (const auto& p : parts) all += p.exchange == exchange ? p.data : "";
  std::vector<std::string> events;
  for (std::size_t end = 0; (end = all.find("\n\n")) != std::string::npos; all.erase(0, end + 2)) {
    events.push_back(all.substr(0, end + 2));
  }
  return events;
}
std::string id_in(const std::string& event) { return event.substr(4, event.find('\n') - 4); }

TEST_F(gateway_alone, sends_a_client_that_resumes_a_stream_what_it_lacks) {
  const std::vector<std::pair<std::string, std::vector<token>>> texts{{"one ", {1}}, {"two ", {2}}, {"three", {3}}};
  const auto answer = [&](std::uint64_t id, std::size_t at_once) {
    const auto session = session_id{all<verify_run>().back().round.sequence.value};
    for (std::size_t i = 0; i < texts.size(); i += at_once) {
      session_text m{.session = session};
      for (std::size_t j = i; j < std::min(i + at_once, texts.size()); ++j) m.text += texts[j].first;
      m.tokens = {1};
      tell(m);
    }
    tell(session_finished{.session = session, .reason = finish_reason::length});
    run();
    return events_of(all<http_stream>(), id);
  };
  const auto begun = ask_for_text(true);
  run();
  const auto seed = all<verify_run>().back().terms->sampling.seed;
  const auto whole = answer(begun, 1);
  ASSERT_EQ(whole.size(), 6U) << "the role, three texts, the end, and the end marker";
  for (std::size_t i = 0; i + 2 < whole.size(); ++i) {
    more_headers = {{"last-event-id", id_in(whole[i])}};
    const auto again = ask_for_text(true);
    run();
    EXPECT_EQ(all<verify_run>().back().terms->sampling.seed, seed);
    EXPECT_EQ(answer(again, 1), std::vector(whole.begin() + static_cast<std::ptrdiff_t>(i) + 1, whole.end()));
  }
  more_headers = {{"Last-Event-ID", id_in(whole[2])}};  // the id of the event with "two "
  const auto wide = ask_for_text(true);
  run();
  EXPECT_EQ(answer(wide, 3), std::vector(whole.begin() + 3, whole.end()));

  const auto rounds = all<verify_run>().size();
  more_headers = {{"Last-Event-ID", id_in(whole[4])}};
  const auto done = ask_for_text(true);
  run();
  EXPECT_EQ(events_of(all<http_stream>(), done), std::vector{whole.back()});
  EXPECT_TRUE(all<http_stream>().back().end);
  EXPECT_EQ(all<verify_run>().size(), rounds) << "nothing is computed";
  EXPECT_EQ(metric("redline_streams_resumed_total"), 6);
}

TEST_F(gateway_alone, goes_on_only_with_streams_of_its_own_numerics) {
  const auto serve_with = [&](const char* numerics) {
    EXPECT_TRUE(services->models->remove(1));
    auto model = make_model("tiny", tokenizer, 1);
    model->numerics = numerics_id(numerics);
    services->models->publish(std::move(model));
  };
  serve_with("exact");
  const auto begun = ask_for_text(true);
  run();
  tell(session_text{.session = session_in_progress(), .text = "one", .tokens = {1}});
  run();
  more_headers = {{"last-event-id", id_in(events_of(all<http_stream>(), begun).back())}};
  serve_with("amx");
  const auto other = ask_for_text(true);
  run();
  EXPECT_EQ(status_of(other), 400U);
  EXPECT_THAT(answer_to(other).value_or(http_respond{}).body, HasSubstr("event_id_of_other_model"));
  // A pool's model has workers of any numerics, so the numerics that the session reports for its worker count.
  serve_with("");
  const auto rounds = all<verify_run>().size();
  const auto again = ask_for_text(true);
  run();
  EXPECT_EQ(all<verify_run>().size(), rounds + 1);
  tell(session_text{.session = {all<verify_run>().back().round.sequence.value},
                    .text = "one two",
                    .tokens = {1, 2},
                    .numerics = numerics_id("exact")});
  run();
  const auto id = api::parse_event_id(id_in(events_of(all<http_stream>(), again).back()));
  ASSERT_TRUE(id);
  EXPECT_EQ(id->choices[0].numerics, numerics_id("exact").value);
}

TEST_F(gateway_alone, does_not_go_on_by_other_defaults) {
  const auto begun = ask_for_text(true);
  run();
  tell(session_text{.session = session_in_progress(), .text = "one", .tokens = {1}});
  run();
  more_headers = {{"last-event-id", id_in(events_of(all<http_stream>(), begun).back())}};
  const auto code = [&] {
    const auto again = ask_for_text(true);
    run();
    const auto refused = answer_to(again);
    return refused && refused->body.find("event_id_of_other_model") != std::string::npos;
  };
  EXPECT_FALSE(code());
  services->eviction_defaults = {.policy = kv::eviction_policy::shift, .n_keep = {}, .n_discard = {}, .n_ctx = 64};
  EXPECT_TRUE(code());
  services->eviction_defaults = {};
  EXPECT_TRUE(services->models->remove(1));
  auto model = make_model("tiny", tokenizer, 1);
  model->sampling.emplace("tiny", sampling::sampling_defaults{.temperature = 0.5F});
  services->models->publish(std::move(model));
  EXPECT_TRUE(code());
}

TEST_F(gateway_alone, refuses_headers_of_which_two_readers_could_believe_different_ones) {
  for (const auto* name : {"Origin", "host"}) {
    more_headers = {{name, "http://localhost"}, {name, "http://elsewhere.example"}};
    const auto asked = ask("GET", "/v1/models");
    run();
    EXPECT_EQ(status_of(asked), 400U) << name;
    EXPECT_THAT(answer_to(asked)->body, HasSubstr("found several"));
  }
}

TEST_F(gateway_alone, names_the_field_that_names_a_token_there_is_none_of) {
  const std::pair<const char*, json> table[] = {
      {"logit_bias", {{"999999", 1}}}, {"stop_token_ids", {999999}}, {"allowed_token_ids", {999999}}};
  for (const auto& [field, value] : table) {
    const auto asked = ask("POST", "/v1/completions", {{"prompt", "x"}, {field, value}});
    run();
    EXPECT_EQ(status_of(asked), 400U) << field;
    EXPECT_EQ(json::parse(answer_to(asked)->body)["error"]["param"], field);
  }
}

TEST_F(gateway_alone, does_not_go_on_with_a_stream_that_would_be_another) {
  const auto begun = ask_for_text(true);
  run();
  tell(session_text{.session = session_in_progress(), .text = "one", .tokens = {1}});
  run();
  const auto id = id_in(events_of(all<http_stream>(), begun).back());
  more_headers = {{"last-event-id", id}};
  const auto again = ask_for_text(true);
  run();
  tell(session_text{.session = {all<verify_run>().back().round.sequence.value}, .text = "2ne", .tokens = {2}});
  run();
  const auto events = events_of(all<http_stream>(), again);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_THAT(events[0], HasSubstr("answer_diverged"));
  EXPECT_EQ(all<release_sequence>().size(), 1U) << "its session ends";

  const auto refusal = [&](bool stream) {
    const auto asked = ask_for_text(stream);
    run();
    EXPECT_EQ(status_of(asked), 400U);
    return answer_to(asked).value_or(http_respond{}).body;
  };
  EXPECT_THAT(refusal(false), HasSubstr("not_a_stream"));
  more_headers = {{"last-event-id", "42"}};
  EXPECT_THAT(refusal(true), HasSubstr("invalid_event_id"));
  more_headers = {{"last-event-id", id}};
  EXPECT_TRUE(services->models->remove(1));
  services->models->publish(make_model("tiny", tokenizer, 2));
  EXPECT_THAT(refusal(true), HasSubstr("event_id_of_other_model"));
  const auto other = ask("POST", "/v1/completions", {{"prompt", "x"}, {"stream", true}});
  run();
  EXPECT_EQ(status_of(other), 400U);
  EXPECT_THAT(answer_to(other)->body, HasSubstr("event_id_of_other_request"));
}

TEST_F(gateway_alone, says_that_a_whole_answer_is_being_made) {
  const auto id = ask_for_text();
  run();
  for (int n = 0; n < 3; ++n) {
    tell(session_text{.session = session_in_progress(), .text = "x", .tokens = {1}});
    run();
  }
  ASSERT_EQ(all<http_progress>().size(), 1U) << "not more often than once a second";
  EXPECT_EQ(all<http_progress>()[0].exchange, id);
  env.advance(microseconds{1'100'000});
  tell(session_text{.session = session_in_progress(), .text = "x", .tokens = {1}});
  run();
  EXPECT_EQ(all<http_progress>().size(), 2U);
}

TEST_F(gateway_alone, ends_the_exchanges_that_it_forgot_when_it_is_made_anew) {
  core.deliver(test::frame_of(core.host_address(), {}, actor::restart_actor{gateway_where}));
  run();
  EXPECT_EQ(all<http_forget>().size(), 1U);
}

TEST_F(gateway_alone, refuses_what_cannot_fit_without_making_it_tokens) {
  const std::string long_text(1U << 20, 'x');
  const auto chat = ask("POST", "/v1/chat/completions", {{"messages", {{{"role", "user"}, {"content", long_text}}}}});
  const auto text = ask("POST", "/v1/completions", {{"prompt", long_text}});
  const auto predicted = ask("POST", "/v1/chat/completions",
                             {{"messages", {{{"role", "user"}, {"content", "hi"}}}},
                              {"prediction", {{"type", "content"}, {"content", long_text}}}});
  run();
  for (const auto id : {chat, text, predicted}) {
    EXPECT_EQ(status_of(id), 400U);
    EXPECT_THAT(answer_to(id)->body, HasSubstr("context_length_exceeded"));
    EXPECT_THAT(answer_to(id)->body, HasSubstr("bytes, which are at least"));
  }
  EXPECT_TRUE(all<verify_run>().empty());
}

TEST_F(gateway_alone, refuses_to_spell_more_text_than_an_answer_may_have) {
  token longest = 0;
  for (token t = 0; t < static_cast<token>(tokenizer->size()); ++t) {
    if (tokenizer->piece(t, true).size() > tokenizer->piece(longest, true).size()) longest = t;
  }
  const std::size_t count = (5U << 20) / tokenizer->piece(longest, true).size();
  const auto id = ask("POST", "/detokenize", {{"tokens", std::vector<token>(count, longest)}});
  run();
  EXPECT_EQ(status_of(id), 400U);
  EXPECT_THAT(answer_to(id)->body, HasSubstr("expected at most 4194304"));
}

TEST_F(gateway_alone, sends_a_long_answer_in_parts_between_which_others_are_served) {
  const auto id = ask("POST", "/tokenize", {{"content", std::string(2U << 20, 'x')}, {"with_pieces", true}});
  run();
  tell(drain_gateway{});
  ASSERT_TRUE(answer_to(id));
  EXPECT_EQ(all<http_body>().size(), 1U) << "a handler sends one part";
  EXPECT_EQ(call("GET", "/livez"), 200U);
  EXPECT_EQ(all<http_body>().size(), 1U);
  std::string body;
  while (all<http_body>().back().more) {
    EXPECT_EQ(drained, 0) << "a drain waits for all parts";
    const auto before = all<http_body>().size();
    pass(microseconds{0});
    ASSERT_EQ(all<http_body>().size(), before + 1);
  }
  for (const auto& part : all<http_body>()) body += part.data;
  EXPECT_EQ(body.size(), answer_to(id)->whole_bytes);
  EXPECT_GT(body.size(), 4U << 20);
  EXPECT_TRUE(json::accept(body));
  pass(microseconds{600'000});
  EXPECT_EQ(drained, 1);
}

TEST_F(gateway_alone, has_the_context_that_the_target_models_process_has_room_for) {
  const auto context = [&] {
    const auto id = ask("GET", "/v1/models");
    run();
    return json::parse(answer_to(id)->body)["data"][0]["max_model_len"].get<int>();
  };
  const auto status_of_prompt = [&] {
    const auto id = ask("POST", "/v1/completions", {{"prompt", std::string(100, 'x')}, {"max_tokens", 1}});
    run();
    return status_of(id);
  };
  EXPECT_EQ(context(), 256);
  tell(scheduler_report{.ready = true, .tokens_max = 64}, manager_where);
  run();
  EXPECT_EQ(context(), 64);
  EXPECT_EQ(status_of_prompt(), 400U);
  tell(scheduler_report{.ready = true, .tokens_max = 4096}, manager_where);
  run();
  EXPECT_EQ(context(), 256) << "another worker has more space than the model";
  EXPECT_EQ(status_of_prompt(), 0U) << "it is being answered";
}

TEST_F(gateway_alone, without_keys_answers_no_page_of_elsewhere) {
  const auto call_from = [&](const std::string& host, const std::string& origin) {
    header_list headers{{"Host", host}};
    if (!origin.empty()) headers.emplace_back("Origin", origin);
    if (!key.empty()) headers.emplace_back("Authorization", "Bearer " + key);
    tell(http_arrived{.exchange = ++exchange, .method = "GET", .path = "/metrics", .headers = headers});
    run();
    return status_of(exchange);
  };
  EXPECT_EQ(call_from("localhost:80", ""), 200U);
  EXPECT_EQ(call_from("evil.example", ""), 403U);
  EXPECT_EQ(call_from("localhost:80", "https://evil.example"), 403U);
  services->keys->replace(*api_keys::load(std::vector<std::string>{"a:sk-some-long-key"}));
  key = "sk-some-long-key";
  EXPECT_EQ(call_from("public.example", "https://ui.example"), 200U) << "the key identifies the tenant";
}

/// Expects these members and allows others: {"name": "string"}, or ["number"] for a non-empty array.
void expect_shape(const json& answer, const json& shape, const std::string& where) {
  if (shape.is_string()) {
    EXPECT_EQ(answer.type_name(), shape.get<std::string>()) << where;
  } else if (shape.is_array()) {
    ASSERT_TRUE(answer.is_array() && !answer.empty()) << where;
    for (const auto& one : answer) expect_shape(one, shape[0], where + "[]");
  } else {
    ASSERT_TRUE(answer.is_object()) << where << ": " << answer;
    for (const auto& [name, inner] : shape.items()) {
      ASSERT_TRUE(answer.contains(name)) << where << "." << name;
      expect_shape(answer[name], inner, where + "." + name);
    }
  }
}

TEST_F(gateway_alone, speaks_to_routers_made_for_vllm) {
  const json chat{{"messages", {{{"role", "user"}, {"content", "hi"}}}}, {"cache_salt", "s"}};
  const json text{{"prompt", {"one", "two words"}}};
  for (const auto* path : {"/v1/chat/completions/render", "/v1/completions/render"}) {
    EXPECT_EQ(call("POST", path), 404U) << "not requested";
  }
  EXPECT_THAT(metrics(), testing::Not(HasSubstr("vllm:")));

  services->speaks_vllm = true;
  const auto golden = json::parse(test::read_file(test::source_path("tests/golden/vllm.json")));
  std::map<std::string, json> answers;
  for (const auto& [path, shape] : golden["answers"].items()) {
    const bool renders = path.ends_with("/render");
    const auto id = ask(renders ? "POST" : "GET", path,
                        !renders                                 ? json()
                        : path.find("chat") == std::string::npos ? text
                                                                 : chat);
    run();
    ASSERT_EQ(status_of(id), 200U) << path << answer_to(id)->body;
    answers[path] = json::parse(answer_to(id)->body);
    expect_shape(answers[path], shape, path);
  }
  EXPECT_THAT(metrics(), HasSubstr("vllm:num_requests_running{engine=\"0\",model_name=\"tiny\"} "));
  EXPECT_EQ(answers["/v1/completions/render"].size(), 2U);
  EXPECT_EQ(answers["/v1/chat/completions/render"]["cache_salt"], "s");
  EXPECT_TRUE(all<verify_run>().empty()) << "nothing is computed";

  // These are the tokens that the answer is computed from.
  ask("POST", "/v1/chat/completions", chat);
  run();
  const auto asked = all<verify_run>().back();
  EXPECT_EQ(json(asked.round.tail), answers["/v1/chat/completions/render"]["token_ids"]);
  EXPECT_EQ(asked.terms->prefix_scope, to_prefix_scope({0}, "s"));
  ask_for_text();
  run();
  EXPECT_EQ(all<verify_run>().back().terms->prefix_scope, 0U);
}

TEST_F(gateway_alone, repeats_a_requests_id_and_says_when_to_come_again) {
  const auto header = [&](std::uint64_t id, const std::string& name) {
    const auto answer = answer_to(id).value_or(http_respond{});
    const auto* found = find_header(answer.headers, name);
    return found ? *found : std::string("none");
  };
  more_headers = {{"X-Request-Id", "mine"}};
  services->sessions_max = 0;
  const auto full = ask_for_text();
  run();
  EXPECT_EQ(status_of(full), 429U);
  EXPECT_EQ(header(full, "x-request-id"), "mine");
  EXPECT_EQ(header(full, "retry-after"), "1");
  tell(drain_gateway{});
  const auto late = ask_for_text();
  run();
  EXPECT_EQ(status_of(late), 503U);
  EXPECT_EQ(header(late, "x-request-id"), "mine");
  EXPECT_NE(header(late, "retry-after"), "none");
}

/// A gateway of a model that answers in channels, whose names stand between control tokens.
class gateway_of_channels : public gateway_alone {
 protected:
  void SetUp() override {
    gateway_alone::SetUp();
    auto tiny = test::make_tiny_model({.context = 256});
    auto& tokens = std::get<std::vector<std::string>>(tiny.metadata["tokenizer.ggml.tokens"]);
    const std::vector<std::string> control{"<|endoftext|>", "<|start|>",  "<|end|>",  "<|channel|>",
                                           "<|message|>",   "<|return|>", "<|call|>", "<|constrain|>"};
    std::copy(control.begin(), control.end(), tokens.begin() + test::tiny_model::end_of_text);
    tiny.metadata["tokenizer.ggml.eos_token_id"] = std::uint32_t{test::tiny_model::end_of_text + 5};
    tiny.metadata["tokenizer.chat_template"] = std::string(test::harmony_template);
    harmony = *text::tokenizer::from_file(*tiny.file());
    services->models->publish(make_model("oss", harmony, 3));
  }
  /// Sends a request, lets the model write, and returns everything that the client received.
  std::string answer(const std::string& path, json body, const std::string& text) {
    sent.clear();
    body["model"] = "oss";
    const auto id = ask("POST", path, body);
    run();
    EXPECT_EQ(all<verify_run>().size(), 1U) << answer_to(id).value_or(http_respond{}).body;
    if (all<verify_run>().empty()) return {};
    auto tokens = harmony->encode(text, {.parse_special = true});
    for (std::uint64_t round = 0; !tokens.empty(); ++round) {
      const verify_run asked = all<verify_run>().back();
      const auto count = static_cast<std::ptrdiff_t>(std::min<std::size_t>(tokens.size(), 3));
      core.deliver(test::frame_of(address_of({}), manager_where,
                                  verified{.sequence = asked.round.sequence,
                                           .round = asked.round.number,
                                           .tokens = {tokens.begin(), tokens.begin() + count}}));
      tokens.erase(tokens.begin(), tokens.begin() + count);
      run();
    }
    if (const auto whole = answer_to(id)) return whole->body;
    std::string events;
    for (const auto& m : all<http_stream>()) events += m.data;
    return events;
  }

  const std::string written =
      "<|channel|>analysis<|message|>hm < that<|end|><|start|>assistant<|channel|>final<|message|>It is so.<|return|>";
  const json messages = {{{"role", "user"}, {"content", "hi"}}};
  std::shared_ptr<const text::tokenizer> harmony;
};

TEST_F(gateway_of_channels, tells_reasoning_from_the_answer_without_tools) {
  const auto whole = json::parse(answer("/v1/chat/completions", {{"messages", messages}}, written));
  const auto& message = whole["choices"][0]["message"];
  EXPECT_EQ(message["content"], "It is so.") << whole;
  EXPECT_EQ(message["reasoning_content"], "hm < that") << whole;
  EXPECT_EQ(whole["choices"][0]["finish_reason"], "stop");
  EXPECT_GT(whole["usage"]["completion_tokens_details"]["reasoning_tokens"], 5);

  const auto plain = json::parse(
      answer("/v1/chat/completions", {{"messages", messages}}, "<|channel|>final<|message|>It is so.<|return|>"));
  EXPECT_EQ(plain["choices"][0]["message"]["content"], "It is so.");
  EXPECT_FALSE(plain["choices"][0]["message"].contains("reasoning_content"));
}

TEST_F(gateway_of_channels, tells_them_apart_in_a_stream) {
  const std::string events = answer("/v1/chat/completions", {{"messages", messages}, {"stream", true}}, written);
  std::string content, reasoning;
  for (std::size_t at = events.find("data: {"); at != std::string::npos; at = events.find("data: {", at + 1)) {
    const auto event = json::parse(events.substr(at + 6, events.find('\n', at) - at - 6));
    if (event["choices"].empty()) continue;
    const auto& delta = event["choices"][0]["delta"];
    content += delta.value("content", "");
    reasoning += delta.value("reasoning_content", "");
  }
  EXPECT_EQ(content, "It is so.") << events;
  EXPECT_EQ(reasoning, "hm < that") << events;
}

TEST_F(gateway_of_channels, other_protocols_have_their_own_places_for_it) {
  const auto response = json::parse(answer("/v1/responses", {{"input", "hi"}}, written));
  ASSERT_EQ(response["output"].size(), 2U) << response;
  EXPECT_EQ(response["output"][0]["type"], "reasoning");
  EXPECT_THAT(response["output"][0].dump(), HasSubstr("hm < that"));
  EXPECT_EQ(response["output"][1]["content"][0]["text"], "It is so.");

  const auto message = json::parse(
      answer("/v1/messages",
             {{"messages", messages}, {"max_tokens", 100}, {"thinking", {{"type", "enabled"}, {"budget_tokens", 50}}}},
             written));
  ASSERT_EQ(message["content"].size(), 2U) << message;
  EXPECT_EQ(message["content"][0]["thinking"], "hm < that");
  EXPECT_EQ(message["content"][1]["text"], "It is so.");
}

TEST_F(gateway_of_channels, shows_the_tools_of_a_conversation_to_who_asks_what_the_model_reads) {
  const json tool = {{"type", "function"}, {"function", {{"name", "get_weather"}, {"description", "looks outside"}}}};
  json body{{"model", "oss"}, {"messages", messages}};
  const auto read = [&](const std::string& path) {
    const auto id = ask("POST", path, body);
    run();
    EXPECT_EQ(status_of(id), 200U) << answer_to(id)->body;
    return json::parse(answer_to(id)->body);
  };
  const std::size_t without = read("/tokenize")["count"];
  body["tools"] = json::array({tool});
  EXPECT_THAT(read("/apply-template")["prompt"].get<std::string>(), HasSubstr("get_weather"));
  const std::size_t with = read("/tokenize")["count"];
  EXPECT_GT(with, without);
  services->speaks_vllm = true;
  EXPECT_EQ(read("/v1/chat/completions/render")["token_ids"].size(), with) << "the tokens that the chat reads";
  body["tool_choice"] = "none";
  EXPECT_EQ(read("/tokenize")["count"], without);
  body["model"] = "tiny";
  body.erase("tool_choice");
  const auto id = ask("POST", "/apply-template", body);
  run();
  EXPECT_EQ(status_of(id), 400U);
  EXPECT_THAT(answer_to(id)->body, HasSubstr("'tools' cannot be used"));
}

TEST_F(gateway_of_channels, leaves_completions_and_what_is_not_split_alone) {
  const auto raw =
      json::parse(answer("/v1/completions", {{"prompt", "hi"}}, "<|channel|>final<|message|>so<|return|>"));
  EXPECT_EQ(raw["choices"][0]["text"], "finalso");
  const auto none =
      json::parse(answer("/v1/chat/completions", {{"messages", messages}, {"reasoning_format", "none"}}, written));
  EXPECT_THAT(none["choices"][0]["message"]["content"].dump(), HasSubstr("analysishm"));
}

/// A gateway with a second model, which has its own tokens.
class gateway_of_two : public gateway_alone {
 protected:
  void SetUp() override {
    gateway_alone::SetUp();
    auto tiny = test::make_tiny_model({.context = 256});
    test::add_program_tokens(tiny);
    tiny.metadata["tokenizer.chat_template"] = std::string("{% for m in messages %}[{{ m['content'] }}]{% endfor %}");
    other = *text::tokenizer::from_file(*tiny.file());
    auto model = make_model("zeta", other, 2);
    model->aliases = {"coder", "gpt-4o"};
    services->models->publish(std::move(model));
  }
  json ask_and_read(const std::string& path, const json& body) {
    const auto id = ask("POST", path, body);
    run();
    EXPECT_EQ(status_of(id), 200U) << answer_to(id).value_or(http_respond{}).body;
    return json::parse(answer_to(id).value_or(http_respond{}).body, nullptr, false);
  }

  std::shared_ptr<const text::tokenizer> other;
};

TEST_F(gateway_of_two, answers_each_model_by_its_own_tokenizer_and_template) {
  const std::string text = "<copy lines";
  ASSERT_NE(tokenizer->encode(text), other->encode(text));
  EXPECT_EQ(ask_and_read("/tokenize", {{"content", text}})["tokens"], json(tokenizer->encode(text)))
      << "without a name, the first one is used";
  EXPECT_EQ(ask_and_read("/tokenize", {{"content", text}, {"model", "tiny"}})["tokens"], json(tokenizer->encode(text)));
  EXPECT_EQ(ask_and_read("/tokenize", {{"content", text}, {"model", "coder"}})["tokens"], json(other->encode(text)));
  const token last = static_cast<token>(other->size()) - 1;  // the other model has no such token
  EXPECT_EQ(ask_and_read("/detokenize", {{"tokens", {last}}, {"model", "zeta"}})["content"], other->piece(last, true));
  const auto unknown = ask("POST", "/detokenize", {{"tokens", {last}}, {"model", "tiny"}});
  run();
  EXPECT_EQ(status_of(unknown), 400U);
  const json messages = {{{"role", "user"}, {"content", "hi"}}};
  EXPECT_EQ(ask_and_read("/apply-template", {{"messages", messages}, {"model", "gpt-4o"}})["prompt"], "[hi]");
}

TEST_F(gateway_of_two, opens_a_session_for_the_model_that_a_request_names) {
  const std::string text = "<copy lines";
  for (const auto& [name, canonical, by] :
       {std::tuple{"tiny", "tiny", tokenizer}, std::tuple{"gpt-4o", "zeta", other}}) {
    sent.clear();
    const auto id = ask("POST", "/v1/completions", {{"prompt", text}, {"model", name}, {"max_tokens", 8}});
    run();
    ASSERT_EQ(all<verify_run>().size(), 1U);
    EXPECT_EQ(all<verify_run>()[0].round.tail, by->encode(text));
    tell(session_finished{.session = session_in_progress()});
    run();
    ASSERT_EQ(status_of(id), 200U);
    const json answer = json::parse(answer_to(id)->body);
    EXPECT_EQ(answer["model"], canonical);
    EXPECT_EQ(answer["system_fingerprint"], services->models->snapshot()->find(name)->fingerprint);
  }
}

TEST_F(gateway_of_two, goes_on_with_an_answer_whose_model_has_left) {
  const auto id = ask("POST", "/v1/completions", {{"prompt", "x"}, {"model", "coder"}, {"logprobs", 0}});
  run();
  EXPECT_TRUE(services->models->remove(2));
  const token last = static_cast<token>(other->size()) - 1;
  tell(session_text{
      .session = session_in_progress(), .text = "<gen", .tokens = {last}, .logprobs = {{.logprob = -1.0F}}});
  tell(session_finished{.session = session_in_progress()});
  run();
  ASSERT_EQ(status_of(id), 200U);
  EXPECT_THAT(answer_to(id)->body, HasSubstr("<gen"));
  const auto late = ask("POST", "/v1/completions", {{"prompt", "x"}, {"model", "coder"}});
  run();
  EXPECT_EQ(status_of(late), 404U);
}

TEST_F(gateway_of_two, says_which_models_there_are_when_asked_for_another) {
  for (const auto& id :
       {ask("POST", "/v1/completions", {{"prompt", "x"}, {"model", "my-model"}}), ask("GET", "/v1/models/my-model")}) {
    run();
    ASSERT_EQ(status_of(id), 404U);
    EXPECT_EQ(json::parse(answer_to(id)->body)["error"]["message"],
              "no model 'my-model'; available: tiny, zeta. The operator of the server can add a name with --alias, or "
              "accept any name with --accept-any-model.");
  }
}

TEST_F(gateway_of_two, lists_what_a_model_understands_where_that_is_little) {
  auto model = make_model("demo", other, 3);
  model->known_phrases = {"Set `A` to 1."};
  services->models->publish(std::move(model));
  const auto id = ask("GET", "/v1/models");
  run();
  const auto list = json::parse(answer_to(id)->body)["data"];
  ASSERT_EQ(list[0]["id"], "demo");
  EXPECT_EQ(list[0]["meta"]["known_phrases"], json({"Set `A` to 1."}));
  EXPECT_FALSE(list[1]["meta"].contains("known_phrases"));
}

TEST_F(gateway_alone, answers_in_ollamas_form_below_its_path_whatever_is_asked) {
  for (const char* path : {"/api/pull", "/api/embed", "/api/embeddings", "/api/nothing/of/the/kind"}) {
    const auto id = ask("POST", path, json::object());
    run();
    EXPECT_EQ(status_of(id), 404U) << path;
    EXPECT_TRUE(json::parse(answer_to(id)->body)["error"].is_string()) << answer_to(id)->body;
  }
  const auto id = ask("POST", "/v1/pull", json::object());
  run();
  EXPECT_TRUE(json::parse(answer_to(id)->body)["error"].is_object()) << "OpenAI's form elsewhere";
}

TEST_F(gateway_alone, speaks_of_the_context_when_a_prediction_is_too_long) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += "x ";
  const auto id = ask("POST", "/v1/chat/completions",
                      {{"messages", {{{"role", "user"}, {"content", "hi"}}}},
                       {"prediction", {{"type", "content"}, {"content", text}}}});
  run();
  EXPECT_EQ(status_of(id), 400U);
  const json error = json::parse(answer_to(id)->body)["error"];
  EXPECT_EQ(error["code"], "context_length_exceeded");
  EXPECT_THAT(error["message"].dump(),
              HasSubstr("maximum context length is 256 tokens. However, 'prediction.content' has"));
}

TEST_F(gateway_of_two, keeps_an_edit_sessions_model) {
  const auto opened =
      ask("POST", "/v1/redline/sessions", {{"model", "coder"}, {"files", {{{"path", "a"}, {"text", "<copy lines"}}}}});
  run();
  ASSERT_EQ(status_of(opened), 201U);
  const json shown = json::parse(answer_to(opened)->body);
  EXPECT_EQ(shown["model"], "zeta");
  EXPECT_EQ(shown["files"][0]["tokens"], other->encode("<copy lines").size());
  EXPECT_TRUE(services->models->remove(2));
  sent.clear();
  const auto id = ask("POST", "/v1/redline/sessions/" + shown["id"].get<std::string>() + "/complete", {{"path", "a"}});
  run();
  const auto asked = all<verify_run>();
  ASSERT_EQ(asked.size(), 1U) << answer_to(id).value_or(http_respond{}).body;
  EXPECT_THAT(asked[0].round.tail, testing::Contains(other->encode("<copy lines")[0]));
}

TEST_F(gateway_of_two, lists_models_with_their_aliases) {
  const auto id = ask("GET", "/v1/models");
  run();
  const json list = json::parse(answer_to(id)->body)["data"];
  ASSERT_EQ(list.size(), 2U);
  EXPECT_EQ(list[0]["id"], "tiny");
  EXPECT_FALSE(list[0].contains("aliases"));
  EXPECT_EQ(list[1]["id"], "zeta");
  EXPECT_EQ(list[1]["aliases"], json({"coder", "gpt-4o"}));
  const auto one = ask("GET", "/v1/models/coder");
  run();
  EXPECT_EQ(json::parse(answer_to(one)->body), list[1]);
  EXPECT_EQ(call("GET", "/v1/models/other"), 404U);
  services->accept_any_model = true;
  const auto any = ask("GET", "/v1/models/other");
  run();
  EXPECT_EQ(json::parse(answer_to(any)->body)["id"], "tiny");
}

TEST_F(gateway_alone, is_not_ready_without_a_model) {
  EXPECT_TRUE(services->models->remove(1));
  EXPECT_EQ(call("GET", "/readyz"), 503U);
  EXPECT_EQ(call("GET", "/v1/models/tiny"), 503U);
  EXPECT_EQ(call("GET", "/v1/models"), 200U) << "an empty list";
  for (const auto& [path, body] :
       {std::pair{"/v1/completions", json{{"prompt", "x"}, {"model", "tiny"}}},
        std::pair{"/tokenize", json{{"content", "x"}}}, std::pair{"/v1/redline/sessions", json::object()}}) {
    const auto id = ask("POST", path, body);
    run();
    ASSERT_EQ(status_of(id), 503U) << path;
    EXPECT_THAT(answer_to(id)->body, HasSubstr("No model is loaded yet."));
  }
}

TEST_F(gateway_alone, finds_routes_by_method_and_path) {
  EXPECT_EQ(call("GET", "/v1/models"), 200U);
  EXPECT_EQ(call("GET", "/models/tiny"), 200U);
  EXPECT_EQ(call("HEAD", "/models"), 200U);
  EXPECT_EQ(call("GET", "/v1/models/other/model"), 404U);
  EXPECT_EQ(call("POST", "/v1/models"), 405U);
  EXPECT_EQ(call("OPTIONS", "/v1/chat/completions"), 204U);
  EXPECT_EQ(call("OPTIONS", "/v1/nothing"), 404U);
  EXPECT_EQ(call("POST", "/v1/embeddings"), 400U) << "clients do not retry this";
  EXPECT_EQ(call("GET", "/v1/models/"), 200U);
  EXPECT_EQ(call("GET", "/v1/models/tiny/"), 200U);
  EXPECT_EQ(call("GET", "//v1//models"), 200U);
  EXPECT_EQ(call("GET", "/v1"), 200U);
}

std::string header_of(const std::optional<http_respond>& answer, const std::string& name) {
  const auto* found = answer ? find_header(answer->headers, name) : nullptr;
  return found != nullptr ? *found : std::string("none");
}

TEST_F(gateway_alone, says_which_methods_and_paths_there_are) {
  EXPECT_EQ(call("PUT", "/v1/chat/completions"), 405U);
  EXPECT_EQ(header_of(answer_to(exchange), "Allow"), "POST, OPTIONS");
  EXPECT_EQ(call("POST", "/v1/models"), 405U);
  EXPECT_EQ(header_of(answer_to(exchange), "Allow"), "GET, HEAD, OPTIONS");
  EXPECT_EQ(call("OPTIONS", "/v1/models"), 204U);
  EXPECT_EQ(header_of(answer_to(exchange), "Allow"), "GET, HEAD, OPTIONS");
  EXPECT_EQ(header_of(answer_to(exchange), "Content-Type"), "none") << "a 204 has no content";
  EXPECT_EQ(call("POST", "/v1/chat/completion"), 404U);
  EXPECT_THAT(answer_to(exchange)->body, HasSubstr("/v1/chat/completions"));
  EXPECT_EQ(call("POST", "/v1/v1/chat/completions"), 404U);
  EXPECT_THAT(answer_to(exchange)->body, HasSubstr("did you mean /v1/chat/completions?"));
}

TEST_F(gateway_alone, shows_a_person_what_it_is) {
  EXPECT_EQ(call("GET", "/"), 200U);
  const auto open = answer_to(exchange);
  EXPECT_THAT(header_of(open, "Content-Type"), HasSubstr("text/html"));
  EXPECT_THAT(open->body, HasSubstr("<code>tiny</code>"));
  EXPECT_THAT(open->body, HasSubstr("/chat/completions"));
  services->keys->replace(*api_keys::load(std::vector<std::string>{"a:sk-some-long-key"}));
  EXPECT_EQ(call("GET", "/"), 200U);
  EXPECT_THAT(answer_to(exchange)->body, testing::Not(HasSubstr("tiny")))
      << "clients without a key do not learn the models";
  EXPECT_EQ(call("GET", "/favicon.ico"), 204U);
}

TEST_F(gateway_alone, shows_the_studio_unless_told_otherwise) {
  services->shows_studio = true;
  const bool has_page = find_studio_file("index.html").has_value();
  EXPECT_EQ(call("GET", "/studio/studio.js"), has_page ? 200U : 404U);
  if (has_page) {
    EXPECT_EQ(call("GET", "/"), 200U);
    EXPECT_EQ(answer_to(exchange)->body, find_studio_file("index.html")->bytes);
  }
  EXPECT_EQ(call("GET", "/studio/gateway.cpp"), 404U);
  services->shows_studio = false;
  EXPECT_EQ(call("GET", "/studio/studio.js"), 404U);
  EXPECT_EQ(call("GET", "/"), 200U);
  const auto plain = answer_to(exchange)->body;
  EXPECT_THAT(plain, HasSubstr("/chat/completions"));
  EXPECT_THAT(plain, HasSubstr("Version " + version() + ","));
  EXPECT_EQ(plain.find("without the studio") == std::string::npos, has_page);
  EXPECT_EQ(call("GET", "/paths"), 200U);
  EXPECT_EQ(answer_to(exchange)->body, plain);
}

TEST_F(gateway_alone, tells_who_watches_what_it_does) {
  services->keys->replace(*api_keys::load(std::vector<std::string>{"a:sk-some-long-key"}));
  services->metrics_are_open = true;
  EXPECT_EQ(call("GET", "/v1/redline/status"), 401U);
  pass(microseconds{1'000'000});
  for (const auto& m : all<report_status>()) EXPECT_FALSE(m.with_details) << "there are no watchers";
  key = "sk-some-long-key";
  const auto watcher = ask("GET", "/v1/redline/status");
  run();
  sent.clear();
  pass(microseconds{1'000'000});
  ASSERT_FALSE(all<report_status>().empty());
  EXPECT_TRUE(all<report_status>().back().with_details);
  const auto told = [&] {
    std::vector<http_stream> events;
    for (auto& m : all<http_stream>()) {
      if (m.exchange == watcher) events.push_back(std::move(m));
    }
    sent.clear();
    return events;
  };
  tell(scheduler_report{.ready = true, .workers = {{.process = 3, .batches_total = 5}}}, manager_where);
  run();
  auto events = told();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(json::parse(events[0].data.substr(6))["schedulers"][0]["batches_total"], 5);
  for (int i = 0; i < 5; ++i) pass(microseconds{500'000});
  events = told();
  ASSERT_FALSE(events.empty()) << "the scheduler is silent, which is reported to clients";
  EXPECT_TRUE(json::parse(events[0].data.substr(6))["schedulers"].empty());
  tell(drain_gateway{});
  run();
  EXPECT_TRUE(told().back().end);
  EXPECT_EQ(call("GET", "/v1/redline/status"), 503U);
}

TEST_F(gateway_alone, names_a_tenant_in_the_log_as_its_file_does) {
  services->keys->replace(*api_keys::load(std::vector<std::string>{"ann:sk-key-of-ann", "sk-nameless-key"}));
  const auto log_of = [&](const std::string& shown) {
    key = shown;
    configure_log(log_level::info, log_format::text);
    testing::internal::CaptureStderr();
    EXPECT_EQ(call("GET", "/v1/models"), 200U);
    configure_log(log_level::off, log_format::text);
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(log_of("sk-key-of-ann"), HasSubstr(" tenant=ann "));
  const auto number = services->keys->snapshot()->find("sk-nameless-key")->tenant.value;
  EXPECT_THAT(log_of("sk-nameless-key"), HasSubstr(" tenant=" + std::to_string(number) + " "));
}

TEST_F(gateway_alone, exchanges_keys_without_cutting_what_runs) {
  services->keys->replace(*api_keys::load(std::vector<std::string>{"ann:sk-key-of-ann"}));
  key = "sk-key-of-ann";
  const auto running = ask_for_text();
  run();
  services->keys->replace(*api_keys::load(std::vector<std::string>{"ben:sk-key-of-ben"}));
  EXPECT_EQ(call("GET", "/v1/models"), 401U) << "the key is gone";
  EXPECT_EQ(status_of(running), 0U) << "its answer is still in progress";
  const session_id who = session_in_progress();
  tell(session_finished{.session = who, .reason = finish_reason::stop}, address_of(who));
  run();
  EXPECT_EQ(status_of(running), 200U);
  key = "sk-key-of-ben";
  EXPECT_EQ(call("GET", "/v1/models"), 200U);
}

TEST_F(gateway_alone, takes_a_key_from_any_header_that_clients_use) {
  services->keys->replace(*api_keys::load(std::vector<std::string>{"a:sk-some-long-key"}));
  EXPECT_EQ(call("GET", "/v1/models"), 401U);
  for (const std::string name : {"x-api-key", "api-key"}) {
    more_headers = {{name, "sk-some-long-key"}};
    EXPECT_EQ(call("GET", "/v1/models"), 200U) << name;
  }
  more_headers.clear();
  EXPECT_EQ(call("GET", "/metrics"), 401U);
  services->metrics_are_open = true;
  EXPECT_EQ(call("GET", "/metrics"), 200U);
  EXPECT_EQ(call("GET", "/v1/models"), 401U);
}

TEST_F(gateway_alone, lets_pages_of_named_origins_use_it) {
  services->pages = *cross_origin::make({"https://ui.example"});
  more_headers = {{"Host", "localhost:80"},
                  {"Origin", "https://ui.example"},
                  {"Content-Type", "application/json"},
                  {"Access-Control-Request-Headers", "authorization,x-stainless-os"}};
  EXPECT_EQ(call("OPTIONS", "/v1/chat/completions"), 204U);
  const auto preflight = answer_to(exchange);
  EXPECT_EQ(header_of(preflight, "Access-Control-Allow-Origin"), "https://ui.example");
  EXPECT_EQ(header_of(preflight, "Access-Control-Allow-Methods"), "POST");
  EXPECT_EQ(header_of(preflight, "Access-Control-Allow-Headers"), "authorization,x-stainless-os");
  EXPECT_EQ(header_of(preflight, "Access-Control-Allow-Credentials"), "none");
  EXPECT_EQ(call("GET", "/v1/models"), 200U);
  EXPECT_EQ(header_of(answer_to(exchange), "Access-Control-Allow-Origin"), "https://ui.example");
  EXPECT_EQ(header_of(answer_to(exchange), "Vary"), "Origin");
  EXPECT_EQ(call("GET", "/v1/nothing"), 404U);
  EXPECT_EQ(header_of(answer_to(exchange), "Access-Control-Allow-Origin"), "https://ui.example")
      << "a page may read errors";
  const auto id = ask_for_text(true);
  run();
  tell(session_admitted{session_in_progress()});
  run();
  ASSERT_FALSE(all<http_stream>().empty());
  EXPECT_EQ(all<http_stream>()[0].exchange, id);
  EXPECT_NE(find_header(all<http_stream>()[0].headers, "Access-Control-Allow-Origin"), nullptr);
  more_headers[1].second = "https://other.example";
  EXPECT_EQ(call("GET", "/v1/models"), 403U);
  EXPECT_EQ(header_of(answer_to(exchange), "Access-Control-Allow-Origin"), "none");
}

TEST_F(gateway_alone, reads_packed_bodies) {
  const std::string body = R"({"content": "one two"})";
  tell(http_arrived{.exchange = ++exchange,
                    .method = "POST",
                    .path = "/tokenize",
                    .headers = {{"Content-Encoding", "gzip"}},
                    .body = test::make_gzip(body)});
  run();
  EXPECT_EQ(status_of(exchange), 200U) << answer_to(exchange)->body;
  const auto packed = answer_to(exchange)->body;
  EXPECT_EQ(status_of(ask("POST", "/tokenize", json::parse(body))), 0U);
  run();
  EXPECT_EQ(answer_to(exchange)->body, packed);
  more_headers = {{"Content-Encoding", "br"}};
  const auto unknown = ask("POST", "/tokenize", json::parse(body));
  more_headers = {{"Content-Encoding", "gzip"}};
  const auto untrue = ask("POST", "/tokenize", json::parse(body));
  run();
  EXPECT_EQ(status_of(unknown), 415U);
  EXPECT_EQ(status_of(untrue), 400U);
}

TEST_F(gateway_alone, begins_a_stream_as_soon_as_its_request_is_admitted) {
  const auto id = ask("POST", "/v1/chat/completions",
                      {{"messages", {{{"role", "user"}, {"content", "hi"}}}}, {"stream", true}, {"n", 2}});
  run();
  EXPECT_TRUE(all<http_stream>().empty()) << "it can still be refused";
  const auto rounds = all<verify_run>();
  ASSERT_EQ(rounds.size(), 2U);
  tell(session_admitted{{rounds[0].round.sequence.value}});
  run();
  EXPECT_TRUE(all<http_stream>().empty()) << "its second answer can be refused";
  tell(session_admitted{{rounds[1].round.sequence.value}});
  run();
  const auto parts = all<http_stream>();
  ASSERT_FALSE(parts.empty());
  EXPECT_TRUE(parts[0].begin);
  const auto events = events_of(parts, id);
  ASSERT_EQ(events.size(), 2U) << "the roles";
  EXPECT_THAT(events[0], HasSubstr("assistant"));
  tell(session_text{.session = {rounds[0].round.sequence.value}, .text = "x", .tokens = {1}});
  run();
  EXPECT_EQ(events_of(all<http_stream>(), id).size(), 3U) << "no role is sent twice";
  tell(session_finished{.session = {rounds[1].round.sequence.value},
                        .reason = finish_reason::failed,
                        .why_not = failure{errc::queue_full, ""}});
  run();
  EXPECT_THAT(events_of(all<http_stream>(), id).back(), HasSubstr("queue_full")) << "too late for a status";
  EXPECT_FALSE(answer_to(id));
  EXPECT_EQ(metric("redline_refused_total{code=\"queue_full\",status=\"429\"}"), 1);
}

TEST_F(gateway_alone, counts_what_was_used_in_every_event_from_the_first_on) {
  const json asked{{"messages", {{{"role", "user"}, {"content", "hi"}}}},
                   {"stream", true},
                   {"stream_options", {{"include_usage", true}, {"continuous_usage_stats", true}}}};
  for (const bool is_long : {false, true}) {
    sent.clear();
    const auto id = ask("POST", "/v1/chat/completions", asked);
    run();
    const auto session = session_in_progress();
    if (is_long) tell(session_admitted{session});
    run();
    tell(session_text{.session = session, .text = "xy", .tokens = {1, 2}});
    run();
    std::vector<json> usages;
    for (const auto& event : events_of(all<http_stream>(), id)) {
      usages.push_back(json::parse(event.substr(event.find("data: ") + 6))["usage"]);
    }
    ASSERT_EQ(usages.size(), 2U);
    ASSERT_TRUE(usages[0].is_object()) << is_long;
    EXPECT_GT(usages[0]["prompt_tokens"], 2);
    EXPECT_EQ(usages[0]["completion_tokens"], 0) << "the role comes before any text";
    EXPECT_EQ(usages[1]["completion_tokens"], 2);
    tell(http_closed{id});
    run();
  }
}

TEST_F(gateway_alone, names_the_field_that_has_a_token_which_the_model_has_not) {
  const std::pair<const char*, json> wrong[] = {
      {"logit_bias", {{"5000", 1}}}, {"stop_token_ids", {5000}}, {"allowed_token_ids", {5000}}};
  for (const auto& [field, value] : wrong) {
    const auto id =
        ask("POST", "/v1/chat/completions", {{"messages", {{{"role", "user"}, {"content", "hi"}}}}, {field, value}});
    run();
    ASSERT_EQ(status_of(id), 400U);
    const auto error = json::parse(answer_to(id)->body)["error"];
    EXPECT_EQ(error["param"], field);
    EXPECT_THAT(error["message"].dump(), HasSubstr("found 5000"));
  }
}

TEST_F(gateway_alone, says_why_it_ranks_nothing_and_saves_no_slots) {
  for (const char* path : {"/rerank", "/v1/rerank", "/v1/reranking", "/slots/0"}) {
    const auto id = ask("POST", path, {{"query", "a"}});
    run();
    EXPECT_EQ(status_of(id), 400U) << path;
    EXPECT_EQ(json::parse(answer_to(id)->body)["error"]["code"], "unsupported_endpoint") << path;
  }
}

TEST_F(gateway_alone, has_a_slot_for_each_answer_that_runs_and_none_for_those_that_wait) {
  services->running_max = 2;
  for (int i = 0; i < 4; ++i) ask_for_text();
  run();
  tell(session_text{.session = all_sessions()[3], .text = "x", .tokens = {1}});
  run();
  auto id = ask("GET", "/slots");
  run();
  const auto slots = json::parse(answer_to(id)->body);
  ASSERT_EQ(slots.size(), 2U);
  for (const auto& slot : slots) EXPECT_EQ(slot["is_processing"], true);
  EXPECT_EQ(slots[0]["next_token"][0]["n_decoded"], 1);
  id = ask("GET", "/props");
  run();
  const auto props = json::parse(answer_to(id)->body);
  EXPECT_EQ(props["total_slots"], 2);
  EXPECT_EQ(props["default_generation_settings"]["params"]["top_k"], 40);
}

TEST_F(gateway_alone, answers_llama_cpps_clients_with_what_they_read) {
  json asked{{"prompt", "hi"},
             {"n_predict", 4},
             {"n_probs", 1},
             {"seed", 3},
             {"logit_bias", json::array({json::array({"ab", false})})}};
  auto id = ask("POST", "/completion", asked);
  run();
  ASSERT_FALSE(answer_to(id)) << answer_to(id)->body;
  const auto round = all<verify_run>().at(0);
  const auto spelled = tokenizer->encode("ab", {.continues = true});
  ASSERT_EQ(round.terms->sampling.logit_bias.size(), spelled.size());
  for (const auto& [t, bias] : round.terms->sampling.logit_bias) {
    EXPECT_TRUE(std::ranges::count(spelled, t) == 1 && std::isinf(bias));
  }
  const session_id session = session_in_progress();
  const session_text text{
      .session = session, .text = "x", .tokens = {7}, .logprobs = {{.logprob = -0.5F, .top = {{9, -0.25F}}}}};
  tell(text);
  tell(session_finished{.session = session, .reason = finish_reason::stop});
  run();
  const auto whole = json::parse(answer_to(id)->body);
  EXPECT_EQ(whole["prompt"], "hi") << whole;
  EXPECT_EQ(whole["generation_settings"]["n_predict"], 4);
  EXPECT_EQ(whole["generation_settings"]["seed"], 3);
  EXPECT_EQ(whole["generation_settings"]["logit_bias"].size(), spelled.size());
  EXPECT_EQ(whole["tokens"], json::array()) << "unless return_tokens requests them";
  EXPECT_EQ(whole["completion_probabilities"][0]["id"], 7);
  EXPECT_EQ(whole["completion_probabilities"][0]["top_logprobs"][0]["id"], 9);

  sent.clear();
  asked["stream"] = true;
  id = ask("POST", "/completion", asked);
  run();
  session_text again = text;
  again.session = session_in_progress();
  tell(again);
  tell(session_finished{.session = again.session, .reason = finish_reason::stop});
  run();
  const auto events = events_of(all<http_stream>(), id);
  ASSERT_EQ(events.size(), 2U);
  const auto part = json::parse(events[0].substr(events[0].find("data: ") + 6));
  EXPECT_EQ(part["tokens"], json::array({7}));
  EXPECT_EQ(part["completion_probabilities"].size(), 1U);
  const auto last = json::parse(events[1].substr(events[1].find("data: ") + 6));
  EXPECT_EQ(last["stop"], true);
  EXPECT_EQ(last["prompt"], "hi");
  EXPECT_EQ(last["generation_settings"]["stream"], true);
}

TEST_F(gateway_alone, refuses_to_repeat_a_prompt_in_each_of_llama_cpps_answers_without_bound) {
  const std::string prompt(200, 'p');
  services->answer_bytes_max = 300;
  const auto ask_with = [&](const json& more) {
    json body{{"prompt", prompt}, {"n_predict", 4}};
    body.update(more);
    const auto id = ask("POST", "/completion", body);
    run();
    return answer_to(id);
  };
  EXPECT_FALSE(ask_with(json::object()));
  const auto refused = ask_with({{"n_cmpl", 2}});
  ASSERT_TRUE(refused) << "each answer has the prompt";
  EXPECT_THAT(refused->body, HasSubstr("answer_too_large"));
  EXPECT_FALSE(ask_with({{"n_cmpl", 2}, {"response_fields", {"content"}}}));
}

TEST_F(gateway_alone, holds_the_connection_of_a_whole_answer_open_once_it_is_admitted) {
  const auto id = ask_for_text();
  run();
  EXPECT_TRUE(all<http_hold>().empty());
  tell(session_admitted{session_in_progress()});
  run();
  ASSERT_EQ(all<http_hold>().size(), 1U);
  EXPECT_EQ(all<http_hold>()[0].exchange, id);
  EXPECT_NE(find_header(all<http_hold>()[0].headers, "x-request-id"), nullptr);
}

TEST_F(gateway_alone, counts_what_it_refuses_whoever_does) {
  EXPECT_EQ(metric("redline_refused_total{code=\"queue_full\",status=\"429\"}"), 0);
  services->sessions_max = 0;
  ask_for_text();
  run();
  services->sessions_max = 1;
  ask_for_text();
  run();
  tell(session_finished{.session = session_in_progress(),
                        .reason = finish_reason::failed,
                        .why_not = failure{errc::queue_full, "the scheduler's"}});
  run();
  EXPECT_EQ(metric("redline_refused_total{code=\"queue_full\",status=\"429\"}"), 2);
  call("GET", "/v1/nothing");
  call("DELETE", "/v1/models");
  EXPECT_EQ(metric("redline_refused_total{code=\"\",status=\"404\"}"), 1);
  EXPECT_EQ(metric("redline_refused_total{code=\"\",status=\"405\"}"), 1);
  EXPECT_EQ(metric("redline_http_responses_total{path=\"/chat/completions\",status=\"4xx\"}"), 2);
  EXPECT_EQ(metric("redline_http_responses_total{path=\"none\",status=\"4xx\"}"), 1);
  EXPECT_EQ(metric("redline_http_responses_total{path=\"/models\",status=\"4xx\"}"), 1);
}

TEST_F(gateway_alone, measures_lengths_and_the_time_between_tokens) {
  ask_for_text();
  run();
  const auto session = session_in_progress();
  tell(session_text{.session = session, .text = "x", .tokens = {1}});
  run();
  pass(microseconds{30'000});
  tell(session_text{.session = session, .text = "yz", .tokens = {1, 2, 3}});
  tell(session_finished{.session = session,
                        .stats = {.prompt_tokens = 7, .completion_tokens = 4, .rounds = 2, .queued_us = 2'000'000}});
  run();
  EXPECT_EQ(metric("redline_inter_token_seconds_count"), 3) << "of four tokens";
  EXPECT_NEAR(metric("redline_inter_token_seconds_sum"), 0.03, 0.001);
  EXPECT_EQ(metric("redline_inter_token_seconds_bucket{le=\"0.01\"}"), 3);
  EXPECT_EQ(metric("redline_request_prompt_tokens_sum"), 7);
  EXPECT_EQ(metric("redline_request_generation_tokens_sum"), 4);
  EXPECT_EQ(metric("redline_queue_seconds_sum"), 2);
}

class gateway_traced : public gateway_alone {
 protected:
  void SetUp() override {
    gateway_alone::SetUp();
    services->tracer = spans;
  }
  std::vector<trace::span> ended() { return spans->take(100, std::chrono::milliseconds(0)); }
  /// Returns a text as it is, a number as text, or the joined texts of a list.
  static std::string attribute(const trace::span& of, std::string_view key) {
    for (const auto& [name, value] : of.attributes) {
      if (name != key) continue;
      if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
      if (const auto* text = std::get_if<std::string>(&value)) return *text;
      if (const auto* yes = std::get_if<bool>(&value)) return *yes ? "true" : "false";
      std::string all;
      if (const auto* list = std::get_if<std::vector<std::string>>(&value)) {
        for (const auto& one : *list) all += one;
      }
      return all;
    }
    return "absent";
  }
  std::optional<trace::span_context> span_of_round() const {
    for (const auto& f : sent) {
      if (f.head.id == verify_run::id) return f.head.span;
    }
    return std::nullopt;
  }
  std::shared_ptr<trace::tracer> spans = std::make_shared<trace::tracer>();
  static constexpr const char* parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
};

TEST_F(gateway_traced, a_request_is_a_part_of_its_clients_trace_and_its_answer_one_of_the_request) {
  more_headers = {{"Traceparent", parent}, {"User-Agent", "me"}};
  const auto id = ask_for_text();
  run();
  const auto session = session_in_progress();
  const auto round = span_of_round();
  ASSERT_TRUE(round);
  tell(session_text{.session = session, .text = "x", .tokens = {1}});
  tell(session_finished{.session = session,
                        .reason = finish_reason::length,
                        .stats = {.prompt_tokens = 5,
                                  .completion_tokens = 8,
                                  .rounds = 3,
                                  .target_passes = 4,
                                  .drafted = 6,
                                  .accepted = 5,
                                  .cached_tokens = 2}});
  run();
  EXPECT_EQ(status_of(id), 200U);
  const auto both = ended();
  ASSERT_EQ(both.size(), 2U);
  const auto &answer = both[0], &request = both[1];
  EXPECT_EQ(request.where.trace_id(), std::string(parent).substr(3, 32));
  EXPECT_EQ(request.parent, 0xb7ad6b7169203331U);
  EXPECT_EQ(request.name, "POST /chat/completions");
  EXPECT_EQ(request.kind, trace::span_kind::server);
  EXPECT_EQ(attribute(request, "http.response.status_code"), "200");
  EXPECT_EQ(attribute(request, "http.route"), "/chat/completions");
  EXPECT_EQ(attribute(request, "user_agent.original"), "me");
  EXPECT_FALSE(request.has_failed);
  EXPECT_EQ(answer.parent, request.where.span);
  EXPECT_EQ(answer.name, "chat tiny");
  EXPECT_EQ(answer.where, *round) << "requests to workers are part of the answer";
  EXPECT_EQ(attribute(answer, "gen_ai.operation.name"), "chat");
  EXPECT_EQ(attribute(answer, "gen_ai.request.model"), "tiny");
  EXPECT_EQ(attribute(answer, "gen_ai.request.max_tokens"), "8");
  EXPECT_EQ(attribute(answer, "gen_ai.response.finish_reasons"), "length");
  EXPECT_EQ(attribute(answer, "gen_ai.usage.input_tokens"), "5");
  EXPECT_EQ(attribute(answer, "gen_ai.usage.output_tokens"), "8");
  EXPECT_EQ(attribute(answer, "gen_ai.usage.cache_read.input_tokens"), "2");
  EXPECT_EQ(attribute(answer, "redline.passes"), "4");
  EXPECT_EQ(attribute(answer, "redline.drafted"), "6");
  EXPECT_EQ(attribute(answer, "redline.accepted"), "5");
}

TEST_F(gateway_traced, without_a_good_parent_a_request_begins_a_trace) {
  const std::vector<header_list> cases{
      {}, {{"traceparent", "00-0"}}, {{"traceparent", parent}, {"traceparent", parent}}};
  for (const auto& headers : cases) {
    more_headers = headers;
    call("GET", "/v1/models");
    const auto one = ended();
    ASSERT_EQ(one.size(), 1U);
    EXPECT_EQ(one[0].parent, 0U);
    EXPECT_NE(one[0].where.trace_id(), std::string(parent).substr(3, 32));
  }
}

TEST_F(gateway_traced, what_its_caller_does_not_sample_is_not_traced) {
  more_headers = {{"traceparent", std::string(parent).substr(0, 53) + "00"}};
  ask_for_text();
  run();
  EXPECT_FALSE(span_of_round());
  tell(session_finished{.session = session_in_progress()});
  run();
  EXPECT_TRUE(ended().empty());
}

TEST_F(gateway_traced, of_requests_without_a_parent_a_share_is_traced) {
  spans = services->tracer = std::make_shared<trace::tracer>(trace::tracer::queue_spans_max, 0.0);
  call("GET", "/v1/models");
  EXPECT_TRUE(ended().empty());
  more_headers = {{"traceparent", parent}};
  call("GET", "/v1/models");
  EXPECT_EQ(ended().size(), 1U) << "its caller samples it";
}

TEST_F(gateway_traced, monitors_leave_no_spans) {
  for (const char* path : {"/healthz", "/readyz", "/metrics"}) call("GET", path);
  EXPECT_TRUE(ended().empty());
}

TEST_F(gateway_traced, errors_are_seen) {
  call("GET", "/v1/nothing");
  auto spans_ended = ended();
  ASSERT_EQ(spans_ended.size(), 1U);
  EXPECT_EQ(spans_ended[0].name, "GET");
  EXPECT_EQ(attribute(spans_ended[0], "http.response.status_code"), "404");
  EXPECT_FALSE(spans_ended[0].has_failed) << "the client's fault";
  ask_for_text();
  run();
  tell(session_finished{.session = session_in_progress(),
                        .reason = finish_reason::failed,
                        .why_not = failure{errc::not_ready, "no worker"}});
  run();
  spans_ended = ended();
  ASSERT_EQ(spans_ended.size(), 2U);
  for (const auto& s : spans_ended) EXPECT_TRUE(s.has_failed) << s.name;
  EXPECT_EQ(attribute(spans_ended[1], "http.response.status_code"), "503");
}

TEST_F(gateway_traced, the_spans_of_a_client_that_leaves_end) {
  const auto id = ask_for_text();
  run();
  tell(http_closed{id});
  run();
  const auto both = ended();
  ASSERT_EQ(both.size(), 2U);
  for (const auto& s : both) EXPECT_TRUE(s.has_failed) << s.name;
}

TEST_F(gateway_traced, tells_what_became_of_spans) {
  spans->note_exported(3);
  spans->note_failed(2);
  EXPECT_EQ(metric("redline_trace_spans_total{result=\"exported\"}"), 3);
  EXPECT_EQ(metric("redline_trace_spans_total{result=\"failed\"}"), 2);
  EXPECT_EQ(metric("redline_trace_spans_total{result=\"dropped\"}"), 0);
}

}  // namespace
}  // namespace redline::actors
