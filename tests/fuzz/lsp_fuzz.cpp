// Any bytes from an editor: the messages are the same wherever the stream is cut, answers are well-formed JSON, there
// is at most one answer per request, and the server receives the editor's text.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "actors/cli/lsp/language_server.hpp"
#include "actors/cli/lsp/message_frames.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/strict_json.hpp"
#include "tests/fuzz/driver.hpp"

using namespace redline;
using namespace redline::actors::cli::lsp;

namespace {

constexpr std::size_t input_bytes_max = 4096;
constexpr std::size_t body_bytes_max = 1024;

void check(bool is_true, const char* what) {
  if (is_true) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

/// Ends each call after the next message has been read, in one of the ways of a server.
class desk final : public call_desk {
 public:
  void start(std::uint64_t ticket, server_call what) override { calls_.emplace(ticket, std::move(what)); }
  void give_up(std::uint64_t) override {}

  void end_all(language_server& server) {
    const auto ending = std::exchange(calls_, {});
    for (const auto& [ticket, what] : ending) {
      server_reply reply;
      reply.what = static_cast<server_reply::kind>(turn_++ % 23 % 9);
      reply.why = "why";
      if (const auto* opened = std::get_if<open_call>(&what); opened && reply.what == server_reply::kind::done) {
        reply.session = "live-" + std::to_string(ticket);
        texts_[reply.session] = opened->text;
      }
      if (const auto* patch = std::get_if<patch_call>(&what)) apply(*patch);
      if (const auto* complete = std::get_if<complete_call>(&what)) {
        check(complete->byte <= texts_[complete->session].size(), "a completion after the end of the text");
        reply.text = "a\nb";
      }
      if (const auto* edit = std::get_if<edit_call>(&what)) {
        if (!edit->session.empty()) check(texts_[edit->session] == edit->before, "the session has another text");
        reply.edits = {{{{0, 0}, {0, 0}}, "x"}};
      }
      if (std::holds_alternative<next_edit_call>(what)) reply.edits = {{{{0, 0}, {1, 0}}, "x"}};
      server.progressed(ticket, turn_);
      server.finished(ticket, std::move(reply));
    }
  }

 private:
  void apply(const patch_call& patch) {
    std::string& text = texts_[patch.session];
    for (const byte_edit& e : patch.changes.edits) {
      if (!e.where) {
        text = e.text;
        continue;
      }
      check(e.where->begin <= e.where->end && e.where->end <= text.size(), "a change outside of the text");
      text.replace(e.where->begin, e.where->end - e.where->begin, e.text);
    }
  }

  std::map<std::uint64_t, server_call> calls_;
  std::map<std::string, std::string> texts_;
  std::size_t turn_ = 0;
};

std::vector<frame> frames_of(const std::vector<std::string_view>& pieces) {
  frame_reader reader(body_bytes_max);
  std::vector<frame> out;
  for (const auto piece : pieces) {
    for (frame& f : reader.feed(piece)) out.push_back(std::move(f));
  }
  return out;
}

void serve(const std::vector<frame>& frames) {
  std::map<std::string, int> open;  // requests by id
  desk calls;
  language_server::instant now{std::chrono::hours(1)};
  language_server server(
      {.version = "1", .server = "s", .now = [&] { return now; }},
      [&](const json& m) {
        check(static_cast<bool>(parse_json<json>(dump_json(m))), "an answer that is no JSON");
        if (m.contains("method") || m["id"].is_null()) return;
        check(open[m["id"].dump()]-- > 0, "an answer to no request");
      },
      calls);
  for (const frame& f : frames) {
    if (server.is_over()) break;
    if (f.what != frame::kind::message) {
      server.refuse_unread(f.text);
      continue;
    }
    const auto m = parse_rpc(f.text);
    const json& id = m ? m->id : m.error().id;
    if (!id.is_null() && (!m || m->what == rpc_message::kind::request)) ++open[id.dump()];
    server.take(f.text);
    calls.end_all(server);
    now += std::chrono::seconds(7);
    server.wake();
  }
  server.stop();
}

std::string session(const std::string& changes) {
  const auto note = [](const std::string& method, const std::string& params) {
    return frame_of(R"({"jsonrpc":"2.0","method":")" + method + R"(","params":)" + params + "}");
  };
  const auto ask = [](const std::string& method, const std::string& params) {
    return frame_of(R"({"jsonrpc":"2.0","id":3,"method":")" + method + R"(","params":)" + params + "}");
  };
  return ask(
             "initialize",
             R"({"capabilities":{"window":{"workDoneProgress":true},"workspace":{"applyEdit":true}},"initializationOptions":{"nextEdits":true}})") +
         note("textDocument/didOpen",
              R"({"textDocument":{"uri":"u","version":1,"text":"a\r\n\ud83d\ude00b\u00e9\n"}})") +
         note("textDocument/didChange",
              R"({"textDocument":{"uri":"u","version":2},"contentChanges":[)" + changes + "]}") +
         ask("textDocument/completion", R"({"textDocument":{"uri":"u"},"position":{"line":1,"character":2}})") +
         ask("textDocument/inlineCompletion", R"({"textDocument":{"uri":"u"},"position":{"line":0,"character":0}})") +
         ask("textDocument/codeAction",
             R"({"textDocument":{"uri":"u"},"range":{"start":{"line":0,"character":0},"end":{"line":0,"character":0}}})") +
         ask("workspace/executeCommand",
             R"({"command":"redline.edit","arguments":[{"uri":"u","instruction":"i","range":{"start":{"line":0,"character":0},"end":{"line":1,"character":1}}}]})") +
         frame_of(R"({"jsonrpc":"2.0","id":1,"result":{"applied":true}})") + note("$/cancelRequest", R"({"id":3})");
}

}  // namespace

std::vector<std::string> fuzz::seeds() {
  return {
      session(R"({"range":{"start":{"line":1,"character":0},"end":{"line":1,"character":2}},"text":"x\r"})"),
      session(
          R"({"range":{"start":{"line":0,"character":1},"end":{"line":9,"character":9}},"text":"\ud83d"},{"text":"all"})"),
      frame_of("{}") + frame_of("[]") + "Content-Length: 2000\r\n\r\n" + std::string(2000, 'x') + frame_of("{"),
      "Content-Type: application/json; charset=latin-1\r\n" + frame_of("{}") + "Content-Length: x\r\n\r\n",
      frame_of(R"({"jsonrpc":"2.0","id":"s","method":"shutdown"})") + frame_of(R"({"jsonrpc":"2.0","method":"exit"})"),
  };
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const bool is_quiet = (configure_log(log_level::off, log_format::text), true);
  check(is_quiet, "");
  const std::string_view bytes(reinterpret_cast<const char*>(data), std::min(size, input_bytes_max));
  const auto whole = frames_of({bytes});
  std::vector<std::string_view> singles;
  for (std::size_t i = 0; i < bytes.size(); ++i) singles.push_back(bytes.substr(i, 1));
  check(frames_of(singles) == whole, "other messages when the stream is cut");
  serve(whole);
  return 0;
}
