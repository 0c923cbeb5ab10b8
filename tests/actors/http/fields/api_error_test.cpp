#include "actors/http/fields/api_error.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/http/fields/json.hpp"

namespace redline::api {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(api_error, follows_the_table_of_statuses) {
  struct row {
    errc code;
    unsigned status;
    std::string type, text_code;
  };
  const row table[] = {
      {errc::invalid_argument, 400, "invalid_request_error", ""},
      {errc::context_length_exceeded, 400, "invalid_request_error", "context_length_exceeded"},
      {errc::invalid_template, 400, "invalid_request_error", "invalid_template"},
      {errc::unsupported_format, 400, "invalid_request_error", "unsupported_parameter"},
      {errc::unauthorized, 401, "authentication_error", "invalid_api_key"},
      {errc::model_not_found, 404, "not_found_error", "model_not_found"},
      {errc::queue_full, 429, "rate_limit_error", "queue_full"},
      {errc::mailbox_full, 429, "rate_limit_error", "queue_full"},
      {errc::cancelled, 499, "invalid_request_error", "cancelled"},
      {errc::internal, 500, "server_error", ""},
      {errc::io_error, 500, "server_error", ""},
      {errc::not_ready, 503, "unavailable_error", "loading"},
      {errc::draining, 503, "unavailable_error", "draining"},
      {errc::unreachable, 503, "unavailable_error", "no_worker"},
      {errc::pool_exhausted, 503, "unavailable_error", "overloaded"},
      {errc::session_lost, 503, "unavailable_error", "session_lost"},
      {errc::timed_out, 504, "timeout_error", "deadline_exceeded"},
  };
  for (const auto& expected : table) {
    const auto error = error_of({expected.code, "why"});
    EXPECT_EQ(error.status, expected.status) << name_of(expected.code);
    EXPECT_EQ(error.type, expected.type) << name_of(expected.code);
    EXPECT_EQ(error.code, expected.text_code) << name_of(expected.code);
    EXPECT_EQ(error.retry_after_seconds.has_value(), error.status == 429 || error.status == 503)
        << name_of(expected.code);
  }
}

TEST(api_error, has_a_status_and_a_message_for_every_code) {
  for (int n = 0; n < 256 && is_known(static_cast<errc>(n)); ++n) {
    const auto error = error_of({static_cast<errc>(n), "some context"});
    EXPECT_GE(error.status, 400u);
    EXPECT_FALSE(error.message.empty());
    EXPECT_FALSE(error.type.empty());
  }
}

TEST(api_error, keeps_internals_inside_and_names_the_request) {
  for (const auto code : {errc::internal, errc::io_error, errc::malformed_message, errc::queue_full}) {
    const auto body = error_body(error_of({code, "secret 0x1234 at /path"}, "req-7"));
    EXPECT_THAT(body, Not(HasSubstr("secret")));
  }
  EXPECT_THAT(error_of({errc::internal, "x"}, "req-7").message, HasSubstr("req-7"));
}

TEST(api_error, is_written_as_openai_does) {
  EXPECT_EQ(error_body(bad_field("n", "wrong")),
            R"({"error":{"message":"wrong","type":"invalid_request_error","param":"n","code":null}})");
  EXPECT_EQ(error_body(not_found("no", "model_not_found")),
            R"({"error":{"message":"no","type":"not_found_error","param":null,"code":"model_not_found"}})");
  EXPECT_EQ(error_event(bad_field("", "a\nb\xff")),
            "data: {\"error\":{\"message\":\"a\\nb\uFFFD\",\"type\":\"invalid_request_error\",\"param\":null,"
            "\"code\":null}}\n\n");
  EXPECT_EQ(method_not_allowed("PUT", "/v1/models", "GET").status, 405u);
  EXPECT_EQ(not_supported("later").status, 400u);
}

TEST(api_error, carries_the_headers_that_belong_to_it) {
  using headers = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(error_headers(error_of({errc::queue_full, ""})),
            (headers{{"Retry-After", "1"}, {"retry-after-ms", "1000"}}));
  EXPECT_EQ(error_headers(error_of({errc::unauthorized, ""})), (headers{{"WWW-Authenticate", "Bearer"}}));
  EXPECT_TRUE(error_headers(bad_field("a", "b")).empty());
}

}  // namespace
}  // namespace redline::api
