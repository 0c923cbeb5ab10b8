#include "actors/cli/processes/tracing_flags.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace redline::actors::cli {
namespace {

using testing::HasSubstr;
using transport::http_header;
using transport::http_url;
using variables = std::map<std::string, std::string>;

result<std::optional<transport::otlp_options>> options_with(const variables& set, const std::string& flag = "") {
  return to_otlp_options({.otlp_endpoint = flag}, "redline-test", [&](const char* name) {
    const auto at = set.find(name);
    return at == set.end() ? std::string() : at->second;
  });
}

std::string text_of(const trace::resource& resource, const std::string& key) {
  for (const auto& [name, value] : resource) {
    if (name == key) return std::get<std::string>(value);
  }
  return "absent";
}

TEST(tracing_flags, nothing_is_traced_unless_an_address_is_given) {
  EXPECT_FALSE(*options_with({}));
  EXPECT_FALSE(*options_with({{"OTEL_SERVICE_NAME", "me"}, {"OTEL_EXPORTER_OTLP_HEADERS", "a=b"}}));
}

TEST(tracing_flags, the_address_is_a_base_but_for_the_variable_of_traces) {
  const auto url_of = [](const variables& set, const std::string& flag = "") {
    return (*options_with(set, flag))->url;
  };
  const http_url expected{"c", 4318, "/v1/traces"};
  EXPECT_EQ(url_of({}, "http://c:4318"), expected);
  EXPECT_EQ(url_of({}, "http://c:4318/"), expected);
  EXPECT_EQ(url_of({}, "http://c:4318/v1/traces"), expected);
  EXPECT_EQ(url_of({{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318"}}), expected);
  EXPECT_EQ(url_of({}, "https://c/otlp"), (http_url{"c", 443, "/otlp/v1/traces", true}));
  const variables both{{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318"},
                       {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://d:1/in"}};
  EXPECT_EQ(url_of(both), (http_url{"d", 1, "/in"}));
  EXPECT_EQ(url_of(both, "http://e:2"), (http_url{"e", 2, "/v1/traces"}));
}

TEST(tracing_flags, the_environment_can_say_no_but_the_flag_has_the_last_word) {
  for (const auto& [name, value] : variables{{"OTEL_SDK_DISABLED", "true"}, {"OTEL_TRACES_EXPORTER", "none"}}) {
    EXPECT_FALSE(*options_with({{name, value}, {"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"}})) << name;
    EXPECT_TRUE(*options_with({{name, value}}, "http://c")) << name;
  }
  EXPECT_TRUE(*options_with({{"OTEL_SDK_DISABLED", "false"}, {"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"}}));
}

TEST(tracing_flags, the_service_and_what_is_said_of_it_come_from_the_environment) {
  const auto resource_of = [](variables set) {
    set["OTEL_EXPORTER_OTLP_ENDPOINT"] = "http://c";
    return (*options_with(set))->resource;
  };
  EXPECT_EQ(text_of(resource_of({}), "service.name"), "redline-test");
  const variables list{{"OTEL_RESOURCE_ATTRIBUTES", "service.name=listed, deployment.environment=a%2Cb%20c ,"}};
  EXPECT_EQ(text_of(resource_of(list), "service.name"), "listed");
  EXPECT_EQ(text_of(resource_of(list), "deployment.environment"), "a,b c");
  auto named = list;
  named["OTEL_SERVICE_NAME"] = "named";
  EXPECT_EQ(text_of(resource_of(named), "service.name"), "named");
}

TEST(tracing_flags, headers_come_from_the_environment) {
  const auto options =
      options_with({{"OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20k,x-scope=1=2"}}, "http://c");
  EXPECT_THAT((*options)->headers,
              testing::ElementsAre(http_header{"authorization", "Bearer k"}, http_header{"x-scope", "1=2"}));
}

TEST(tracing_flags, say_what_is_wrong) {
  const auto why = [](const variables& set, const std::string& flag = "") {
    const auto options = options_with(set, flag);
    return options ? std::string("nothing") : options.error().context;
  };
  EXPECT_THAT(why({}, "collector:4318"), HasSubstr("--otlp-endpoint: expected http://HOST:PORT"));
  EXPECT_THAT(why({{"OTEL_EXPORTER_OTLP_ENDPOINT", "grpc://c"}}), HasSubstr("OTEL_EXPORTER_OTLP_ENDPOINT: expected"));
  EXPECT_THAT(why({{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4317"}, {"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"}}),
              HasSubstr("OTEL_EXPORTER_OTLP_PROTOCOL: expected http/json, the only supported protocol, found 'grpc'"));
  for (const char* bad : {"novalue", "=x", "a=%4", "a=%zz", "a=%0a"}) {
    EXPECT_THAT(why({{"OTEL_EXPORTER_OTLP_HEADERS", bad}}, "http://c"),
                HasSubstr("OTEL_EXPORTER_OTLP_HEADERS: expected"))
        << bad;
  }
}

}  // namespace
}  // namespace redline::actors::cli
