#include "runtime/base/log.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace redline {
namespace {

/// What one call writes to standard error with these log settings.
std::string logged(log_format format, log_level least, log_level level, std::string_view who, std::string_view text) {
  configure_log(least, format);
  testing::internal::CaptureStderr();
  log_line(level, who, text);
  std::string out = testing::internal::GetCapturedStderr();
  configure_log(log_level::info, log_format::text);
  return out;
}

std::string after_timestamp(const std::string& line) { return line.substr(std::min(line.find(','), line.size())); }

TEST(log, a_json_line_escapes_what_a_json_string_may_not_hold) {
  const std::string line = logged(log_format::json, log_level::info, log_level::warning, "a\"b",
                                  "tab\t quote\" back\\ line\n nul" + std::string(1, '\0') + "\x1f \u00e9");
  EXPECT_EQ(after_timestamp(line),
            ",\"level\":\"warning\",\"who\":\"a\\\"b\",\"msg\":\"tab\\u0009 quote\\\" back\\\\ line\\u000a "
            "nul\\u0000\\u001f \u00e9\"}\n");
  EXPECT_EQ(line.rfind("{\"ts\":\"2", 0), 0U);
}

TEST(log, a_line_is_utf8_without_control_characters_of_either_kind) {
  for (const auto format : {log_format::json, log_format::text}) {
    const std::string line = logged(format, log_level::info, log_level::info, "x",
                                    "GET /x\xff\xfe \x7f \xC2\x9B"
                                    "2K caf\xC3\xA9");
    EXPECT_NE(line.find("GET /x\xEF\xBF\xBD\xEF\xBF\xBD \\u007f \\u009b2K caf\xC3\xA9"), std::string::npos) << line;
  }
}

TEST(log, a_text_line_names_level_and_component) {
  const std::string line = logged(log_format::text, log_level::debug, log_level::debug, "session 41", "began");
  EXPECT_TRUE(line.ends_with("Z debug session 41: began\n")) << line;
}

TEST(log, lines_under_the_least_level_are_not_written) {
  EXPECT_EQ(logged(log_format::text, log_level::error, log_level::warning, "x", "y"), "");
}

TEST(log, fields_are_members_of_the_object_or_words_after_the_text) {
  const std::vector<log_field> fields{{"request", "req-1"}, {"tokens", 12}, {"why", "a \"b\"\n"}};
  const auto with_fields = [&](log_format format) {
    configure_log(log_level::info, format);
    testing::internal::CaptureStderr();
    log_line(log_level::info, "gateway", "done", fields);
    const std::string out = testing::internal::GetCapturedStderr();
    configure_log(log_level::info, log_format::text);
    return out;
  };
  EXPECT_TRUE(with_fields(log_format::json)
                  .ends_with(R"("msg":"done","request":"req-1","tokens":12,"why":"a \"b\"\u000a"})"
                             "\n"))
      << with_fields(log_format::json);
  EXPECT_TRUE(
      with_fields(log_format::text).ends_with("gateway: done request=req-1 tokens=12 why=\"a \\\"b\\\"\\u000a\"\n"))
      << with_fields(log_format::text);
}

TEST(log, a_text_line_stays_one_line_whatever_is_in_it) {
  const std::string line = logged(log_format::text, log_level::info, log_level::info, "x", "a\nerror forged: b");
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
}

}  // namespace
}  // namespace redline
