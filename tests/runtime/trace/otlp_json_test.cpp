#include "runtime/trace/otlp_json.hpp"

#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>

#include "runtime/base/version.hpp"

namespace redline::trace {
namespace {

using nlohmann::json;

TEST(otlp_json, says_a_span_as_the_protocol_has_it) {
  span s{.where = {0x0af7651916cd43dd, 0x8448eb211c80319c, 0xb7ad6b7169203331},
         .parent = 0xff,
         .name = "chat tiny",
         .kind = span_kind::client,
         .begin = instant(microseconds{5}),
         .end = instant(microseconds{9}),
         .attributes = {{"text", std::string("a\xff\"b")},
                        {"whole", std::int64_t{-3}},
                        {"real", 0.5},
                        {"yes", true},
                        {"list", std::vector<std::string>{"stop", "length"}}},
         .events = {{instant(microseconds{7}), "round", {{"n", std::int64_t{1}}}}},
         .events_dropped = 2,
         .has_failed = true,
         .problem = "why"};
  const auto got = json::parse(encode_otlp({{"service.name", "me"}}, {&s, 1}, {1'700'000'000'000'000}));
  const auto attribute = [](const char* key, const json& value) { return json{{"key", key}, {"value", value}}; };
  json expected_span{
      {"traceId", "0af7651916cd43dd8448eb211c80319c"},
      {"spanId", "b7ad6b7169203331"},
      {"parentSpanId", "00000000000000ff"},
      {"flags", 1},
      {"name", "chat tiny"},
      {"kind", 3},
      {"startTimeUnixNano", "1700000000000005000"},
      {"endTimeUnixNano", "1700000000000009000"},
      {"attributes",
       json::array({attribute("text", {{"stringValue", "a\uFFFD\"b"}}), attribute("whole", {{"intValue", "-3"}}),
                    attribute("real", {{"doubleValue", 0.5}}), attribute("yes", {{"boolValue", true}}),
                    attribute("list", {{"arrayValue",
                                        {{"values",
                                          json::array({{{"stringValue", "stop"}}, {{"stringValue", "length"}}})}}}})})},
      {"events", json::array({{{"timeUnixNano", "1700000000000007000"},
                               {"name", "round"},
                               {"attributes", json::array({attribute("n", {{"intValue", "1"}})})}}})},
      {"droppedEventsCount", 2},
      {"status", {{"code", 2}, {"message", "why"}}}};
  const auto& resource = got.at("resourceSpans").at(0);
  EXPECT_EQ(resource.at("resource").at("attributes"),
            json::array({attribute("service.name", {{"stringValue", "me"}})}));
  const auto& scope = resource.at("scopeSpans").at(0);
  EXPECT_EQ(scope.at("scope"), (json{{"name", "redline"}, {"version", version()}}));
  EXPECT_EQ(scope.at("spans").at(0), expected_span);
}

TEST(otlp_json, leaves_out_what_a_span_has_not) {
  const std::array<span, 2> two{};
  const auto got = json::parse(encode_otlp({}, two, {}));
  const auto& spans = got.at("resourceSpans").at(0).at("scopeSpans").at(0).at("spans");
  ASSERT_EQ(spans.size(), 2U);
  for (const char* absent : {"parentSpanId", "events", "droppedEventsCount", "status"})
    EXPECT_FALSE(spans.at(0).contains(absent)) << absent;
}

TEST(otlp_json, reads_how_many_spans_a_collector_refused) {
  EXPECT_EQ(read_rejected_spans(R"({"partialSuccess":{"rejectedSpans":"7","errorMessage":"full"}})"), 7U);
  EXPECT_EQ(read_rejected_spans(R"({"partialSuccess":{"rejectedSpans":7}})"), 7U);
  for (const char* none : {"", "{}", "[]", "null", "no JSON", R"({"partialSuccess":{}})", R"({"partialSuccess":[]})",
                           R"({"partialSuccess":{"rejectedSpans":-7}})", R"({"partialSuccess":{"rejectedSpans":{}}})"})
    EXPECT_EQ(read_rejected_spans(none), 0U) << none;
}

TEST(otlp_json, knows_the_time) {
  const auto now =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  const auto said =
      (real_environment().now().time_since_epoch().count() + clock_offset::read().unix_us_of_zero) / 1'000'000;
  EXPECT_NEAR(static_cast<double>(said), static_cast<double>(now), 60);
}

}  // namespace
}  // namespace redline::trace
