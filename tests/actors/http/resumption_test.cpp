// Streams that a client asks for again after an event that it has.

#include "actors/http/resumption.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/actors/http/gateway_fixture.hpp"

namespace redline::actors {
namespace {

using ::testing::HasSubstr;

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

}  // namespace
}  // namespace redline::actors
