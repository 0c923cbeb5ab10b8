// Keys, the table of routes, and the small routes.

#include "actors/http/gateway.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "actors/http/studio/studio_files.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/version.hpp"
#include "tests/actors/http/gateway_fixture.hpp"
#include "tests/support/packed_files.hpp"
#include "tests/support/test_data.hpp"

namespace redline::actors {
namespace {

using json = nlohmann::json;
using ::testing::HasSubstr;

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

TEST_F(gateway_alone, refuses_headers_of_which_two_readers_could_believe_different_ones) {
  for (const auto* name : {"Origin", "host"}) {
    more_headers = {{name, "http://localhost"}, {name, "http://elsewhere.example"}};
    const auto asked = ask("GET", "/v1/models");
    run();
    EXPECT_EQ(status_of(asked), 400U) << name;
    EXPECT_THAT(answer_to(asked)->body, HasSubstr("found several"));
  }
}

TEST_F(gateway_alone, ends_the_exchanges_that_it_forgot_when_it_is_made_anew) {
  core.deliver(test::frame_of(core.host_address(), {}, actor::restart_actor{gateway_where}));
  run();
  EXPECT_EQ(all<http_forget>().size(), 1U);
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
  more_headers = {{"Content-Encoding", "zstd"}};
  const auto unknown = ask("POST", "/tokenize", json::parse(body));
  more_headers = {{"Content-Encoding", "gzip"}};
  const auto untrue = ask("POST", "/tokenize", json::parse(body));
  run();
  EXPECT_EQ(status_of(unknown), 415U);
  EXPECT_EQ(status_of(untrue), 400U);
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

}  // namespace
}  // namespace redline::actors
