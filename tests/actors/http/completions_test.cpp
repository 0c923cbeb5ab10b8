// Answers in progress: their places, streams, limits and ends.

#include "actors/http/completions.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/actors/http/gateway_fixture.hpp"

namespace redline::actors {
namespace {

using json = nlohmann::json;
using ::testing::HasSubstr;

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

TEST_F(gateway_alone, cancels_a_session_that_it_does_not_know) {
  constexpr auto stranger = actor::make_address(1, 3, 1005);
  tell(session_text{.session = {77}, .text = "x", .tokens = {1}}, stranger);
  tell(session_admitted{.session = {78}}, stranger);
  run();
  EXPECT_EQ(all<cancel_session>().size(), 2U);
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

}  // namespace
}  // namespace redline::actors
