// When the gateway is ready, and how it drains.

#include "actors/http/readiness.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/actors/http/gateway_fixture.hpp"

namespace redline::actors {
namespace {

using json = nlohmann::json;
using ::testing::HasSubstr;

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

}  // namespace
}  // namespace redline::actors
