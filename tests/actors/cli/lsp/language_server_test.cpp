#include "actors/cli/lsp/language_server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

namespace redline::actors::cli::lsp {
namespace {

using kind = server_reply::kind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// A test with an editor, a server and a clock that are controlled by hand.
class language_server_test : public ::testing::Test, public call_desk {
 protected:
  struct started {
    std::uint64_t ticket;
    server_call what;
  };

  void start(std::uint64_t ticket, server_call what) override { calls.push_back({ticket, std::move(what)}); }
  void give_up(std::uint64_t ticket) override { given_up.push_back(ticket); }

  std::unique_ptr<language_server> make(bool is_there = true) {
    language_server::options how{.version = "9", .server = "http://s", .is_there = is_there};
    how.now = [this] { return now; };
    return std::make_unique<language_server>(
        how, [this](const json& m) { sent.push_back(m); }, *this);
  }
  void tell(const std::string& method, json params = nullptr) {
    server->take(rpc_notification(method, std::move(params)).dump());
  }
  int ask(const std::string& method, json params = nullptr) {
    const int id = ++last_id;
    server->take(rpc_request(id, method, std::move(params)).dump());
    return id;
  }
  void initialize(const json& more = json::object()) {
    json can = {{"workspace", {{"applyEdit", true}, {"workspaceEdit", {{"documentChanges", true}}}}},
                {"window", {{"workDoneProgress", true}}},
                {"textDocument", {{"codeAction", {{"codeActionLiteralSupport", json::object()}}}}}};
    can.update(more);
    ask("initialize", {{"capabilities", can}});
    tell("initialized", json::object());
    sent.clear();
  }
  void open(const std::string& uri = "file:///a.py", const std::string& text = "x = 1\ny = 2\n") {
    tell("textDocument/didOpen",
         {{"textDocument", {{"uri", uri}, {"languageId", "python"}, {"version", 5}, {"text", text}}}});
  }
  /// Opens a document and passes it to the server.
  void open_live(const std::string& uri = "file:///a.py", const std::string& text = "x = 1\ny = 2\n") {
    open(uri, text);
    finish<open_call>({.session = "live-" + uri.substr(8, 1)});
  }
  void type(const std::string& text, int version = 6) {
    tell("textDocument/didChange",
         {{"textDocument", {{"uri", "file:///a.py"}, {"version", version}}},
          {"contentChanges", {{{"range", to_json(text::position_range{{0, 0}, {0, 0}})}, {"text", text}}}}});
  }
  int complete(const std::string& uri = "file:///a.py", bool is_inline = false) {
    return ask(is_inline ? "textDocument/inlineCompletion" : "textDocument/completion",
               {{"textDocument", {{"uri", uri}}}, {"position", to_json(text::text_position{1, 5})}});
  }
  int edit(json more = json::object()) {
    json argument = {{"uri", "file:///a.py"}, {"instruction", "Make it three."}};
    argument.update(more);
    return ask("workspace/executeCommand", {{"command", "redline.edit"}, {"arguments", json::array({argument})}});
  }
  /// Ends the oldest call of this kind and returns it.
  template<class Call>
  Call finish(server_reply reply = {}) {
    const auto at =
        std::find_if(calls.begin(), calls.end(), [](const started& s) { return std::holds_alternative<Call>(s.what); });
    if (at == calls.end()) {
      ADD_FAILURE() << "no such call";
      return {};
    }
    const started s = *at;
    calls.erase(at);
    server->finished(s.ticket, std::move(reply));
    return std::get<Call>(s.what);
  }
  template<class Call>
  long count() const {
    return std::count_if(calls.begin(), calls.end(),
                         [](const started& s) { return std::holds_alternative<Call>(s.what); });
  }
  static server_reply failed(kind what, int retry_seconds = 0) {
    server_reply r;
    r.what = what;
    r.why = "the reason";
    r.retry_after = std::chrono::seconds(retry_seconds);
    return r;
  }
  static server_reply text(const std::string& written) {
    server_reply r;
    r.text = written;
    return r;
  }
  /// Returns the answer to a request, or null while there is none.
  json answer(int id) const {
    for (const json& m : sent) {
      if (!m.contains("method") && m["id"] == id) return m;
    }
    return nullptr;
  }
  int error_code(int id) const {
    const json m = answer(id);
    return m.is_null() || !m.contains("error") ? 0 : m["error"]["code"].get<int>();
  }
  std::vector<json> messages(const std::string& method) const {
    std::vector<json> out;
    for (const json& m : sent) {
      if (member(m, "method") == method) out.push_back(m);
    }
    return out;
  }
  std::vector<std::string> shown() const {
    std::vector<std::string> out;
    for (const json& m : messages("window/showMessage")) out.push_back(m["params"]["message"]);
    return out;
  }
  void reply_to(const json& question, json result) {
    server->take(rpc_result(question["id"], std::move(result)).dump());
  }
  void pass(std::chrono::seconds time) {
    now += time;
    server->wake();
  }

  std::vector<started> calls;
  std::vector<std::uint64_t> given_up;
  std::vector<json> sent;
  language_server::instant now{std::chrono::hours(1)};
  int last_id = 1000;
  std::unique_ptr<language_server> server = make();
};

TEST_F(language_server_test, begins_with_initialize_and_ends_with_exit) {
  EXPECT_EQ(error_code(ask("shutdown")), -32002);
  EXPECT_EQ(error_code(ask("no/such")), -32002);
  tell("textDocument/didOpen", {});
  const int id = ask("initialize", {{"capabilities", json::object()}});
  const json can = answer(id)["result"]["capabilities"];
  EXPECT_EQ(can["positionEncoding"], "utf-16");
  EXPECT_EQ(can["textDocumentSync"]["change"], 2);
  EXPECT_TRUE(can.contains("completionProvider"));
  EXPECT_EQ(error_code(ask("initialize", json::object())), -32600);
  EXPECT_EQ(error_code(ask("no/such")), -32601);
  EXPECT_EQ(error_code(ask("textDocument/didOpen", json::object())), -32600);
  tell("$/unknown", json::object());
  tell("textDocument/completion", json::object());
  server->take("{");
  EXPECT_EQ(sent.back()["error"]["code"], -32700);
  server->take(R"({"jsonrpc":"2.0","id":99,"result":null})");
  EXPECT_EQ(server->exit_code(), 1);
  EXPECT_EQ(answer(ask("shutdown"))["result"], nullptr);
  EXPECT_EQ(error_code(ask("textDocument/completion", json::object())), -32600);
  EXPECT_FALSE(server->is_over());
  tell("exit");
  EXPECT_TRUE(server->is_over());
  EXPECT_EQ(server->exit_code(), 0);
}

TEST_F(language_server_test, agrees_on_units_and_on_what_the_editor_can) {
  const int id = ask("initialize", {{"capabilities",
                                     {{"general", {{"positionEncodings", {"utf-32", "utf-8", "utf-16"}}}},
                                      {"textDocument", {{"inlineCompletion", json::object()}}}}}});
  const json can = answer(id)["result"]["capabilities"];
  EXPECT_EQ(can["positionEncoding"], "utf-8");
  EXPECT_EQ(can["inlineCompletionProvider"], true);
  EXPECT_FALSE(can.contains("completionProvider"));
}

TEST_F(language_server_test, keeps_a_session_for_each_document) {
  initialize();
  open();
  const auto opened = finish<open_call>({.session = "live-1"});
  EXPECT_EQ(opened.path, "a.py");
  EXPECT_EQ(opened.text, "x = 1\ny = 2\n");
  type("a");
  type("b", 7);
  type("c", 8);
  EXPECT_EQ(count<patch_call>(), 1);  // edits are sent one at a time
  const auto first = finish<patch_call>();
  EXPECT_EQ(first.session, "live-1");
  EXPECT_EQ(first.changes, (change_set{1, 2, {{text::byte_range{0, 0}, "a"}}}));
  const auto second = finish<patch_call>();
  EXPECT_THAT(second.changes.edits, SizeIs(2));
  EXPECT_EQ(second.changes.base, 2);
  EXPECT_EQ(second.changes.next, 4);
  EXPECT_THAT(calls, IsEmpty());
  tell("textDocument/didClose", {{"textDocument", {{"uri", "file:///a.py"}}}});
  EXPECT_EQ(finish<close_call>().session, "live-1");
  EXPECT_THAT(sent, IsEmpty());
}

TEST_F(language_server_test, closes_a_session_that_comes_too_late) {
  initialize();
  open();
  tell("textDocument/didClose", {{"textDocument", {{"uri", "file:///a.py"}}}});
  finish<open_call>({.session = "live-1"});
  EXPECT_EQ(finish<close_call>().session, "live-1");
}

TEST_F(language_server_test, completes_the_text_as_it_is_when_asked) {
  initialize();
  open_live();
  type("zz");
  const int id = complete();
  EXPECT_EQ(count<complete_call>(), 0);  // waits until the server has the text
  finish<patch_call>();
  const auto call = finish<complete_call>(text("0"));
  EXPECT_EQ(call.revision, 2);
  EXPECT_EQ(call.byte, 13U);
  EXPECT_EQ(answer(id)["result"]["items"][0]["textEdit"]["newText"], "20");
  const int second = complete("file:///a.py", true);
  finish<complete_call>(text("0"));
  EXPECT_EQ(answer(second)["result"]["items"][0]["insertText"], "0");
}

TEST_F(language_server_test, gives_up_completions_that_nobody_wants_any_more) {
  initialize();
  open_live();
  const int first = complete();
  const int second = complete();
  EXPECT_THAT(answer(first)["result"]["items"], IsEmpty());
  EXPECT_THAT(given_up, SizeIs(1));
  type("x");
  EXPECT_THAT(answer(second)["result"]["items"], IsEmpty());
  EXPECT_THAT(given_up, SizeIs(2));
  const int third = complete();
  tell("$/cancelRequest", {{"id", third}});
  EXPECT_EQ(error_code(third), -32800);
  const auto before = sent.size();
  finish<complete_call>(failed(kind::cancelled));
  finish<complete_call>(text("late"));
  finish<patch_call>();
  EXPECT_EQ(sent.size(), before);
  EXPECT_THAT(calls, IsEmpty());
}

TEST_F(language_server_test, refuses_requests_that_make_no_sense) {
  initialize();
  EXPECT_EQ(error_code(complete("file:///none")), -32602);
  EXPECT_EQ(error_code(ask("textDocument/completion", {{"textDocument", {{"uri", "file:///a.py"}}}})), -32602);
  EXPECT_EQ(error_code(ask("textDocument/codeAction", json::object())), -32602);
  EXPECT_EQ(error_code(ask("workspace/executeCommand", {{"command", "rm"}})), -32602);
  EXPECT_EQ(error_code(ask("workspace/executeCommand", json::array())), -32602);
  EXPECT_EQ(error_code(edit()), -32602);
  open_live();
  EXPECT_EQ(error_code(edit({{"instruction", "  "}})), -32602);
  EXPECT_EQ(error_code(edit({{"instruction", std::string(5000, 'x')}})), -32602);
  EXPECT_EQ(error_code(edit({{"range", 3}})), -32602);
  tell("textDocument/didChange", json::array());
  tell("$/cancelRequest", json::object());
  tell("window/workDoneProgress/cancel", json::object());
  EXPECT_THAT(calls, IsEmpty());
}

TEST_F(language_server_test, opens_a_lost_session_again) {
  initialize();
  open_live();
  const int id = complete();
  finish<complete_call>(failed(kind::lost));
  EXPECT_EQ(finish<open_call>({.session = "live-2"}).text, "x = 1\ny = 2\n");
  finish<complete_call>(text("0"));
  EXPECT_THAT(answer(id)["result"]["items"], SizeIs(1));
  type("q");
  finish<patch_call>(failed(kind::stale));
  EXPECT_EQ(finish<close_call>().session, "live-2");
  EXPECT_EQ(finish<open_call>({.session = "live-3"}).text, "qx = 1\ny = 2\n");
  EXPECT_THAT(shown(), IsEmpty());
}

TEST_F(language_server_test, does_not_open_a_session_again_and_again) {
  initialize();
  open();
  for (int i = 0; i < 3; ++i) finish<open_call>(failed(kind::stale));
  EXPECT_THAT(calls, IsEmpty());
  ASSERT_TRUE(server->wakes_at());
  pass(std::chrono::seconds(31));
  EXPECT_EQ(count<open_call>(), 1);
}

TEST_F(language_server_test, tells_once_that_the_server_is_gone_and_comes_back_later) {
  initialize();
  open_live();
  type("q");
  const int waits = complete();
  finish<patch_call>(failed(kind::gone));
  EXPECT_THAT(answer(waits)["result"]["items"], IsEmpty());
  ASSERT_THAT(shown(), SizeIs(1));
  EXPECT_THAT(shown()[0], HasSubstr("http://s: the reason"));
  type("r", 7);
  EXPECT_THAT(answer(complete())["result"]["items"], IsEmpty());
  EXPECT_EQ(error_code(edit()), -32803);
  for (int i = 0; i < 5; ++i) {
    pass(std::chrono::seconds(31));
    finish<probe_call>(failed(kind::gone));
  }
  EXPECT_THAT(calls, IsEmpty());
  EXPECT_THAT(shown(), SizeIs(1));
  pass(std::chrono::seconds(31));
  finish<probe_call>();
  EXPECT_EQ(finish<open_call>({.session = "live-2"}).text, "rqx = 1\ny = 2\n");
  ASSERT_THAT(shown(), SizeIs(2));
  EXPECT_THAT(shown()[1], HasSubstr("can be used again"));
}

TEST_F(language_server_test, asks_a_server_that_is_none_rarely) {
  initialize();
  open();
  finish<open_call>(failed(kind::foreign));
  EXPECT_THAT(shown(), SizeIs(1));
  pass(std::chrono::seconds(10));
  EXPECT_THAT(calls, IsEmpty());
  pass(std::chrono::seconds(21));
  finish<open_call>(failed(kind::unauthorized));
  EXPECT_THAT(shown(), SizeIs(1));
}

TEST_F(language_server_test, waits_when_the_server_is_full) {
  initialize();
  open();
  const int id = complete();
  finish<open_call>(failed(kind::full, 7));
  EXPECT_THAT(answer(id)["result"]["items"], IsEmpty());
  ASSERT_THAT(shown(), SizeIs(1));
  EXPECT_THAT(shown()[0], HasSubstr("full"));
  type("q");
  EXPECT_THAT(calls, IsEmpty());
  EXPECT_EQ(*server->wakes_at(), now + std::chrono::seconds(7));
  pass(std::chrono::seconds(7));
  finish<open_call>({.session = "live-1"});
  EXPECT_THAT(shown(), SizeIs(1));
}

TEST_F(language_server_test, leaves_large_and_binary_files_alone) {
  initialize();
  open("file:///a.py", std::string((1 << 20) + 1, 'x'));
  EXPECT_THAT(shown(), ElementsAre(HasSubstr("a.py: expected a text of at most 1048576 bytes")));
  type("x");
  EXPECT_THAT(answer(complete())["result"]["items"], IsEmpty());
  EXPECT_EQ(error_code(edit()), -32803);
  open("file:///b", std::string("\0x", 2));
  EXPECT_THAT(messages("window/logMessage"), SizeIs(1));
  EXPECT_THAT(shown(), SizeIs(1));
  EXPECT_THAT(calls, IsEmpty());
}

TEST_F(language_server_test, says_which_file_the_server_refuses) {
  initialize();
  open();
  finish<open_call>(failed(kind::refused));
  EXPECT_THAT(shown(), ElementsAre("Redline gives no completions for a.py: the reason."));
  type("x");
  EXPECT_THAT(calls, IsEmpty());
  EXPECT_EQ(error_code(edit()), -32803);
}

TEST_F(language_server_test, closes_the_session_that_is_unused_longest) {
  initialize();
  for (std::size_t i = 0; i <= language_server::sessions_max; ++i) {
    open("file:///" + std::to_string(i));
    finish<open_call>({.session = "live-" + std::to_string(i)});
  }
  EXPECT_EQ(finish<close_call>().session, "live-0");
  const int id = complete("file:///0");
  EXPECT_EQ(finish<close_call>().session, "live-1");
  finish<open_call>({.session = "live-a"});
  finish<complete_call>(text("1"));
  EXPECT_THAT(answer(id)["result"]["items"], SizeIs(1));
}

TEST_F(language_server_test, closes_sessions_that_were_opened_at_once) {
  initialize();
  for (std::size_t i = 0; i < language_server::sessions_max + 2; ++i) open("file:///" + std::to_string(i));
  for (std::size_t i = 0; i < language_server::sessions_max + 2; ++i) {
    finish<open_call>({.session = "live-" + std::to_string(i)});
  }
  EXPECT_EQ(count<close_call>(), 2);
  EXPECT_EQ(count<open_call>(), 0);
}

TEST_F(language_server_test, bounds_the_open_documents) {
  initialize();
  for (std::size_t i = 0; i < language_server::documents_max + 3; ++i) open("file:///" + std::to_string(i), "");
  EXPECT_THAT(shown(), SizeIs(1));
}

TEST_F(language_server_test, edits_a_file_and_shows_how_far_it_is) {
  initialize();
  open_live();
  const int id = edit();
  const auto asked = messages("window/workDoneProgress/create");
  ASSERT_THAT(asked, SizeIs(1));
  reply_to(asked[0], nullptr);
  server->progressed(calls.back().ticket, 6);
  server_reply done;
  done.edits = {{{{1, 0}, {2, 0}}, "y = 3\n"}};
  const auto call = finish<edit_call>(done);
  EXPECT_EQ(call.session, "live-a");
  EXPECT_EQ(call.instruction, "Make it three.");
  const auto applying = messages("workspace/applyEdit");
  ASSERT_THAT(applying, SizeIs(1));
  EXPECT_EQ(applying[0]["params"]["edit"]["documentChanges"],
            json::parse(R"([{"textDocument":{"uri":"file:///a.py","version":5},"edits":[{"range":
              {"start":{"line":1,"character":0},"end":{"line":2,"character":0}},"newText":"y = 3\n"}]}])"));
  type("the editor's own change");  // arrives before the editor's answer
  EXPECT_TRUE(answer(id).is_null());
  reply_to(applying[0], {{"applied", true}});
  EXPECT_EQ(answer(id)["result"], json::parse(R"({"applied":true,"edits":1})"));
  std::vector<std::string> kinds;
  for (const json& m : messages("$/progress")) kinds.push_back(m["params"]["value"]["kind"]);
  EXPECT_THAT(kinds, ElementsAre("begin", "report", "end"));
}

TEST_F(language_server_test, edits_the_lines_of_a_range_alone) {
  initialize();
  open_live("file:///a.py", "a\nb\nc\nd");
  edit({{"range", to_json(text::position_range{{1, 1}, {3, 0}})}});
  auto call = finish<edit_call>(failed(kind::refused));
  EXPECT_EQ(call.session, "");
  EXPECT_EQ(call.before, "b\nc\n");
  EXPECT_EQ(call.first_line, 1U);
  edit({{"range", to_json(text::position_range{{3, 0}, {9, 9}})}});
  call = finish<edit_call>(failed(kind::refused));
  EXPECT_EQ(call.before, "d");
  EXPECT_EQ(call.first_line, 3U);
  edit({{"range", to_json(text::position_range{{2, 0}, {2, 0}})}});
  EXPECT_EQ(finish<edit_call>(failed(kind::refused)).session, "live-a");
}

TEST_F(language_server_test, leaves_an_edit_out_when_the_document_changed_meanwhile) {
  initialize();
  open_live();
  const int id = edit();
  type("q");
  EXPECT_EQ(error_code(id), -32801);
  EXPECT_THAT(given_up, SizeIs(1));
  const int second = edit();
  tell("textDocument/didClose", {{"textDocument", {{"uri", "file:///a.py"}}}});
  EXPECT_EQ(error_code(second), -32801);
  EXPECT_THAT(messages("workspace/applyEdit"), IsEmpty());
}

TEST_F(language_server_test, cancels_an_edit_by_its_request_or_its_progress) {
  initialize();
  open_live();
  const int first = edit();
  tell("$/cancelRequest", {{"id", first}});
  EXPECT_EQ(error_code(first), -32800);
  const int second =
      ask("workspace/executeCommand", {{"command", "redline.edit"},
                                       {"workDoneToken", "t"},
                                       {"arguments", {{{"uri", "file:///a.py"}, {"instruction", "Do."}}}}});
  tell("window/workDoneProgress/cancel", {{"token", "t"}});
  EXPECT_EQ(error_code(second), -32800);
  EXPECT_EQ(messages("$/progress").back()["params"]["value"]["kind"], "end");
  EXPECT_THAT(given_up, SizeIs(2));
}

TEST_F(language_server_test, bounds_the_edits_under_way) {
  initialize();
  for (std::size_t i = 0; i <= language_server::edits_max; ++i) {
    open("file:///" + std::to_string(i));
    finish<open_call>({.session = "live-" + std::to_string(i)});
    const int id = edit({{"uri", "file:///" + std::to_string(i)}});
    EXPECT_EQ(error_code(id), i < language_server::edits_max ? 0 : -32803);
  }
  EXPECT_EQ(error_code(edit({{"uri", "file:///0"}})), -32803);
}

TEST_F(language_server_test, says_why_an_edit_was_not_applied) {
  initialize();
  open_live();
  const int none = edit();
  finish<edit_call>();
  EXPECT_EQ(answer(none)["result"], json::parse(R"({"applied":false,"edits":0})"));
  const int refused = edit();
  finish<edit_call>(failed(kind::refused));
  EXPECT_EQ(answer(refused)["error"]["message"], "the edit failed: the reason");
  const int unwanted = edit();
  server_reply done;
  done.edits = {{{{0, 0}, {0, 0}}, "z"}};
  finish<edit_call>(done);
  reply_to(messages("workspace/applyEdit").back(), {{"applied", false}, {"failureReason", "read-only"}});
  EXPECT_THAT(answer(unwanted)["error"]["message"], HasSubstr("read-only"));
  const int lost = edit();
  finish<edit_call>(failed(kind::lost));
  finish<open_call>({.session = "live-2"});
  finish<edit_call>(failed(kind::lost));
  EXPECT_EQ(error_code(lost), -32803);
}

TEST_F(language_server_test, hands_the_edit_to_an_editor_that_cannot_be_asked_to_apply_it) {
  initialize({{"workspace", json::object()}, {"window", json::object()}});
  open_live();
  const int id = edit();
  server_reply done;
  done.edits = {{{{0, 0}, {0, 0}}, "z"}};
  finish<edit_call>(done);
  EXPECT_EQ(answer(id)["result"]["applied"], false);
  EXPECT_TRUE(answer(id)["result"]["edit"]["changes"].contains("file:///a.py"));
  EXPECT_THAT(messages("window/workDoneProgress/create"), IsEmpty());
}

TEST_F(language_server_test, offers_actions_with_and_without_an_instruction) {
  ask("initialize", {{"capabilities", {{"textDocument", {{"codeAction", {{"codeActionLiteralSupport", {}}}}}}}},
                     {"initializationOptions", {{"instructions", {"Add types.", 3, ""}}, {"maxTokens", 7}}}});
  open_live();
  const auto actions = [&](json context) {
    return answer(ask("textDocument/codeAction", {{"textDocument", {{"uri", "file:///a.py"}}},
                                                  {"range", to_json(text::position_range{{0, 0}, {1, 0}})},
                                                  {"context", std::move(context)}}))["result"];
  };
  const json all = actions(json::object());
  ASSERT_THAT(all, SizeIs(2));
  EXPECT_EQ(all[0]["title"], "Edit with instruction \u2026");
  EXPECT_EQ(all[1]["arguments"][0]["instruction"], "Add types.");
  EXPECT_THAT(actions({{"only", {"quickfix"}}}), IsEmpty());
  EXPECT_THAT(actions({{"only", {"refactor"}}}), SizeIs(2));
  complete();
  EXPECT_EQ(finish<complete_call>().tokens_max, 7U);
}

TEST_F(language_server_test, waits_for_a_server_that_starts) {
  server = make(false);
  initialize();
  open();
  EXPECT_THAT(answer(complete())["result"]["items"], IsEmpty());
  EXPECT_THAT(answer(edit())["error"]["message"], HasSubstr("starting"));
  EXPECT_THAT(calls, IsEmpty());
  server->server_started();
  EXPECT_EQ(count<open_call>(), 1);
  server = make(false);
  initialize();
  open();
  server->server_failed("no memory");
  EXPECT_THAT(shown(), ElementsAre(HasSubstr("did not start: no memory")));
  EXPECT_THAT(answer(edit())["error"]["message"], HasSubstr("no memory"));
  EXPECT_FALSE(server->wakes_at());
}

TEST_F(language_server_test, opens_its_sessions_anew_at_the_server_that_follows_one_that_has_ended) {
  server = make(false);
  initialize();
  server->server_started();
  open_live();
  server->server_ended();
  EXPECT_THAT(answer(complete())["result"]["items"], IsEmpty());
  EXPECT_THAT(answer(edit())["error"]["message"], HasSubstr("starting"));
  type("x = 2\n", 6);
  EXPECT_EQ(count<patch_call>() + count<open_call>() + count<close_call>(), 0) << "its port may belong to any program";
  server->server_started();
  EXPECT_EQ(finish<open_call>({.session = "live-2"}).text, "x = 2\nx = 1\ny = 2\n");
  const int id = edit();
  EXPECT_EQ(finish<edit_call>(failed(kind::cancelled)).session, "live-2");
  EXPECT_NE(error_code(id), 0);
}

TEST_F(language_server_test, closes_its_sessions_at_the_end) {
  initialize();
  open_live();
  const int id = edit();
  ask("shutdown");
  EXPECT_EQ(error_code(id), -32800);
  EXPECT_EQ(count<close_call>(), 1);
  tell("exit");
  EXPECT_TRUE(server->has_farewells());
  finish<edit_call>(failed(kind::cancelled));
  finish<close_call>();
  EXPECT_FALSE(server->has_farewells());
}

TEST_F(language_server_test, drops_a_document_whose_change_cannot_be_read) {
  server = make();
  initialize();
  for (const json& change : {json{{"range", {{"start", 3}}}, {"text", "x"}}, json{{"text", 7}}, json(1)}) {
    open_live();
    const int under_way = edit();
    tell("textDocument/didChange",
         {{"textDocument", {{"uri", "file:///a.py"}, {"version", 6}}}, {"contentChanges", json::array({change})}});
    EXPECT_NE(error_code(under_way), 0) << "its result would be for another text";
    EXPECT_THAT(messages("window/showMessage").back()["params"]["message"].get<std::string>(),
                HasSubstr("its contents are unknown; close it and open it again"));
    EXPECT_EQ(count<close_call>(), 1) << "the session has another text";
    EXPECT_EQ(error_code(edit()), -32803);
    type("more", 7);
    EXPECT_EQ(count<open_call>() + count<patch_call>(), 0) << "a part of the text does not help";
    tell("textDocument/didChange", {{"textDocument", {{"uri", "file:///a.py"}, {"version", 8}}},
                                    {"contentChanges", json::array({json{{"text", "z = 3\n"}}})}});
    EXPECT_EQ(finish<open_call>({.session = "live-2"}).text, "z = 3\n") << "the whole text does";
    tell("textDocument/didClose", {{"textDocument", {{"uri", "file:///a.py"}}}});
    calls.clear();
    sent.clear();
  }
}

// ---- next edits

class next_edits : public language_server_test {
 protected:
  void begin() {
    ask("initialize", {{"capabilities",
                        {{"workspace", {{"workspaceEdit", {{"documentChanges", true}}}}},
                         {"textDocument",
                          {{"codeAction", {{"codeActionLiteralSupport", json::object()}}},
                           {"inlineCompletion", json::object()}}}}},
                       {"initializationOptions", {{"nextEdits", true}}}});
    tell("initialized", json::object());
    sent.clear();
    open_live();
  }
  void pause() {
    now += language_server::next_edit_pause;
    server->wake();
  }
  static server_reply edits(std::vector<line_edit> list) {
    server_reply r;
    r.edits = std::move(list);
    return r;
  }
  int inline_at(std::uint32_t line) {
    return ask("textDocument/inlineCompletion", {{"textDocument", {{"uri", "file:///a.py"}}},
                                                 {"position", to_json(text::text_position{line, 1})}});
  }
  json actions() {
    const int id = ask("textDocument/codeAction",
                       {{"textDocument", {{"uri", "file:///a.py"}}},
                        {"range", to_json(text::position_range{{0, 0}, {0, 0}})},
                        {"context", json::object()}});
    return answer(id)["result"];
  }
};

TEST_F(next_edits, are_asked_for_in_a_pause_with_the_changes_so_far) {
  begin();
  type("w");
  EXPECT_EQ(count<next_edit_call>(), 0) << "the user may be typing on";
  EXPECT_EQ(server->wakes_at(), now + language_server::next_edit_pause);
  type("z");
  pause();
  ASSERT_EQ(count<next_edit_call>(), 1);
  const auto call = finish<next_edit_call>(edits({{{{1, 0}, {2, 0}}, "zw y = 3\n"}}));
  EXPECT_EQ(call.text, "zwx = 1\ny = 2\n");
  EXPECT_EQ(call.byte, 1U) << "behind the last change";
  EXPECT_EQ(call.changes, "File: a.py:\n<<<<<<< ORIGINAL\nx = 1\n=======\nzwx = 1\n>>>>>>> UPDATED\n");
}

TEST_F(next_edits, are_inline_completions_of_their_line_and_a_code_action) {
  begin();
  type("w");
  const int early = inline_at(1);
  EXPECT_TRUE(answer(early).is_null()) << "waits for the proposal";
  pause();
  finish<next_edit_call>(edits({{{{1, 0}, {2, 0}}, "y = 3\nz = 4\n"}}));
  const json item = answer(early)["result"]["items"][0];
  EXPECT_EQ(item["insertText"], "y = 3\nz = 4");
  EXPECT_EQ(item["range"], to_json(text::position_range{{1, 0}, {1, 5}}));
  EXPECT_THAT(answer(inline_at(0))["result"]["items"], IsEmpty()) << "another line";
  EXPECT_EQ(answer(inline_at(1))["result"]["items"][0], item) << "known by now";
  const json action = actions()[0];
  EXPECT_EQ(action["title"], "Next edit at line 2");
  const json change = action["edit"]["documentChanges"][0];
  EXPECT_EQ(change["textDocument"]["version"], 6);
  EXPECT_EQ(change["edits"][0]["newText"], "y = 3\nz = 4\n");
}

TEST_F(next_edits, are_given_up_at_the_next_key) {
  begin();
  type("w");
  pause();
  const int waiting = inline_at(1);
  ASSERT_EQ(count<next_edit_call>(), 1);
  const auto ticket = calls.back().ticket;
  type("v");
  EXPECT_THAT(given_up, ::testing::Contains(ticket));
  EXPECT_THAT(answer(waiting)["result"]["items"], IsEmpty());
  finish<next_edit_call>(edits({{{{0, 0}, {1, 0}}, "late\n"}}));
  EXPECT_THAT(actions().dump(), ::testing::Not(HasSubstr("Next edit")));
  pause();
  EXPECT_EQ(count<next_edit_call>(), 1);
}

TEST_F(next_edits, are_not_proposed_unless_the_editor_wants_them) {
  initialize();
  open_live();
  type("w");
  EXPECT_EQ(server->wakes_at(), std::nullopt);
  EXPECT_EQ(count<next_edit_call>(), 0);
}

TEST_F(next_edits, leave_out_large_documents_and_end_with_a_lost_server) {
  begin();
  tell("textDocument/didChange",
       {{"textDocument", {{"uri", "file:///a.py"}, {"version", 7}}},
        {"contentChanges", {{{"text", std::string(language_server::next_edit_bytes_max + 1, 'x')}}}}});
  pause();
  EXPECT_EQ(count<next_edit_call>(), 0);
  tell("textDocument/didChange", {{"textDocument", {{"uri", "file:///a.py"}, {"version", 8}}},
                                  {"contentChanges", {{{"text", "short\n"}}}}});
  pause();
  const int waiting = inline_at(0);
  finish<next_edit_call>(failed(kind::gone));
  EXPECT_THAT(answer(waiting)["result"]["items"], IsEmpty());
}

}  // namespace
}  // namespace redline::actors::cli::lsp
