#include "actors/cli/lsp/server_calls.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/cli/lsp/rpc_message.hpp"
#include "tests/transport/http_server_fixture.hpp"

namespace redline::actors::cli::lsp {
namespace {

using transport::exchange_id;
using transport::http_front;
using transport::http_request;
using kind = server_reply::kind;
using ::testing::HasSubstr;

std::string error(const std::string& code) {
  return json{{"error", {{"message", "because of " + code}, {"code", code}}}}.dump();
}

TEST(server_calls, read_what_a_refusal_means) {
  EXPECT_EQ(judge(401, error("invalid_api_key")).what, kind::unauthorized);
  EXPECT_EQ(judge(404, error("session_not_found")).what, kind::lost);
  EXPECT_EQ(judge(404, error("")).what, kind::foreign);
  EXPECT_EQ(judge(404, "<html>not json").what, kind::foreign);
  EXPECT_EQ(judge(405, "").what, kind::foreign);
  EXPECT_EQ(judge(409, error("session_version_mismatch")).what, kind::stale);
  EXPECT_EQ(judge(413, error("session_limit")).what, kind::refused);
  EXPECT_EQ(judge(400, error("context_length_exceeded")).why, "because of context_length_exceeded");
  EXPECT_EQ(judge(503, error("draining")).what, kind::gone);
  EXPECT_EQ(judge(503, error("overloaded")).what, kind::full);
  EXPECT_EQ(judge(500, "").why, "HTTP status 500");
  const std::string seconds = "7", nonsense = "soon", late = "999999999";
  EXPECT_EQ(judge(429, error("session_limit"), &seconds).retry_after.count(), 7);
  EXPECT_EQ(judge(429, "", &nonsense).retry_after.count(), 0);
  EXPECT_EQ(judge(429, "", &late).retry_after.count(), 3600);
  EXPECT_EQ(judge(429, "").what, kind::full);
}

struct asked {
  std::string line, body;
};

/// A server that gives every request the same answer and records the requests.
class canned {
 public:
  explicit canned(unsigned status, std::string body, std::string type = "application/json")
      : server_([this, status, body = std::move(body), type](http_front& front, exchange_id id, http_request r) {
          {
            const std::scoped_lock lock(mutex_);
            last_ = {r.method + " " + r.path, r.body};
          }
          front.respond(id, status, {{"Content-Type", type}}, body);
        }) {}
  server_reply make(const server_call& what) {
    const auto at = server_address::parse("http://127.0.0.1:" + std::to_string(server_.port()), "");
    return server_calls(*at).make(what, given_up_, [this](std::size_t bytes) { bytes_ = bytes; });
  }
  asked last() {
    const std::scoped_lock lock(mutex_);
    return last_;
  }
  std::size_t bytes() const { return bytes_; }

 private:
  std::mutex mutex_;
  asked last_;
  std::size_t bytes_ = 0;
  std::atomic<bool> given_up_ = false;
  transport::http_server_fixture server_;
};

TEST(server_calls, open_change_and_close_a_session) {
  canned s(201, R"({"id":"live-1"})");
  EXPECT_EQ(s.make(open_call{"a.py", "x = 1\n", 4}).session, "live-1");
  EXPECT_EQ(s.last().line, "POST /v1/redline/sessions");
  EXPECT_EQ(json::parse(s.last().body)["files"], json::parse(R"([{"path":"a.py","text":"x = 1\n","version":4}])"));
  EXPECT_EQ(s.make(patch_call{"live-1", "a.py", {4, 6, {{text::byte_range{1, 2}, "y"}, {std::nullopt, "z"}}}}).what,
            kind::done);
  EXPECT_EQ(s.last().line, "PATCH /v1/redline/sessions/live-1/files/a.py");
  EXPECT_EQ(
      json::parse(s.last().body),
      json::parse(R"({"base_version":4,"version":6,"edits":[{"text":"y","bytes":{"start":1,"end":2}},{"text":"z"}]})"));
  EXPECT_EQ(s.make(close_call{"live-1"}).what, kind::done);
  EXPECT_EQ(s.last().line, "DELETE /v1/redline/sessions/live-1");
}

TEST(server_calls, do_not_put_a_strange_name_into_a_path) {
  EXPECT_EQ(canned(201, R"({"id":"../../x"})").make(open_call{}).what, kind::foreign);
  EXPECT_EQ(canned(201, "{}").make(open_call{}).what, kind::foreign);
  EXPECT_EQ(canned(200, "hello").make(open_call{}).what, kind::foreign);
}

TEST(server_calls, complete_at_a_byte) {
  canned s(200, R"({"choices":[{"text":" + 1"}]})");
  EXPECT_EQ(s.make(complete_call{"live-1", "a.py", 3, 9, 20}).text, " + 1");
  EXPECT_EQ(json::parse(s.last().body),
            json::parse(R"({"path":"a.py","version":3,"position":{"byte":9},"max_tokens":20})"));
  EXPECT_EQ(canned(200, R"({"choices":[]})").make(complete_call{}).what, kind::foreign);
}

TEST(server_calls, take_the_next_edit_from_a_range) {
  canned s(200, R"({"start_index":11,"end_index":12,"completion":"3"})");
  const next_edit_call call{.path = "a.py", .text = "x = 1\ny = 22\n", .byte = 4, .changes = "c"};
  const auto found = s.make(call);
  EXPECT_EQ(found.edits.at(0), (line_edit{{{1, 0}, {2, 0}}, "y = 23\n"}));
  EXPECT_EQ(s.last().line, "POST /backend/next_edit_autocomplete");
  EXPECT_EQ(json::parse(s.last().body)["recent_changes"], "c");
  for (const auto* answer : {"{}", R"({"start_index":9,"end_index":2})", R"({"start_index":0,"end_index":99})",
                             R"({"start_index":-1,"end_index":2})"}) {
    EXPECT_EQ(canned(200, answer).make(call).what, kind::foreign) << answer;
  }
}

std::string event(const std::string& content) {
  return "data: " + json{{"choices", {{{"delta", {{"content", content}}}}}}}.dump() + "\n\n";
}

std::string finish_event(const std::string& reason) {
  return "data: " + json{{"choices", {{{"delta", json::object()}, {"finish_reason", reason}}}}}.dump() + "\n\n";
}

TEST(server_calls, make_edits_of_a_streamed_answer) {
  const std::string stream =
      event("```python\nx = 1\n") + event("y = 3\n```") + finish_event("stop") + "data: [DONE]\n\n";
  canned s(200, stream, "text/event-stream");
  const auto whole = s.make(edit_call{.session = "live-1", .path = "a.py", .before = "x = 1\ny = 2\n"});
  EXPECT_EQ(whole.what, kind::done) << whole.why;
  EXPECT_EQ(s.last().line, "POST /v1/redline/sessions/live-1/edit");
  ASSERT_EQ(whole.edits.size(), 1U);
  EXPECT_EQ(whole.edits[0], (line_edit{{{1, 0}, {2, 0}}, "y = 3\n"}));
  EXPECT_GT(s.bytes(), 20U);
  const auto lines = s.make(edit_call{.path = "a.py", .before = "x = 1\r\ny = 2\r\n", .first_line = 7});
  EXPECT_EQ(s.last().line, "POST /v1/chat/completions");
  EXPECT_EQ(json::parse(s.last().body)["prediction"]["content"], "x = 1\ny = 2\n");
  const auto windows = s.make(edit_call{.session = "live-1", .path = "a.py", .before = "x = 1\r\ny = 2\r\n"});
  EXPECT_EQ(s.last().line, "POST /v1/redline/sessions/live-1/edit");
  EXPECT_EQ(windows.edits.at(0), (line_edit{{{1, 0}, {2, 0}}, "y = 3\r\n"}));
  EXPECT_EQ(lines.edits.at(0), (line_edit{{{8, 0}, {9, 0}}, "y = 3\r\n"}));
}

TEST(server_calls, take_no_edit_from_an_answer_without_end) {
  const edit_call call{.session = "s", .path = "a", .before = "x\n"};
  EXPECT_EQ(canned(200, event("```\nx"), "text/event-stream").make(call).what, kind::gone);
  EXPECT_EQ(
      canned(200, event("```\nx") + finish_event("stop") + "data: [DONE]\n\n", "text/event-stream").make(call).what,
      kind::refused);
  for (const std::string& end : {finish_event("length"), std::string()}) {
    const auto cut = canned(200, event("```\nx\n```") + end + "data: [DONE]\n\n", "text/event-stream").make(call);
    EXPECT_EQ(cut.what, kind::refused);
    EXPECT_THAT(cut.why, HasSubstr("was cut before its end"));
  }
  EXPECT_EQ(canned(200, "data: nonsense\n\n", "text/event-stream").make(call).what, kind::foreign);
  const auto told = canned(200, "data: " + error("e") + "\n\n", "text/event-stream").make(call);
  EXPECT_EQ(told.what, kind::refused);
  EXPECT_THAT(told.why, HasSubstr("because of e"));
  EXPECT_EQ(canned(200, "{}").make(call).what, kind::gone);
}

TEST(server_calls, tell_when_nobody_is_there) {
  std::atomic<bool> given_up = false;
  const server_calls none(*server_address::parse("http://127.0.0.1:1", ""));
  EXPECT_EQ(none.make(probe_call{}, given_up, {}).what, kind::gone);
  given_up = true;
  EXPECT_EQ(none.make(probe_call{}, given_up, {}).what, kind::cancelled);
}

}  // namespace
}  // namespace redline::actors::cli::lsp
