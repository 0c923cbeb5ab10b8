#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "actors/cli/lsp/edited_document.hpp"
#include "actors/cli/lsp/rpc_message.hpp"
#include "actors/cli/lsp/server_calls.hpp"

namespace redline::actors::cli::lsp {

/// Makes calls to a server while the language server keeps serving the editor.
class call_desk {
 public:
  virtual ~call_desk() = default;
  /// Starts a call. Reports its outcome to `language_server::finished`, later and exactly once.
  virtual void start(std::uint64_t ticket, server_call what) = 0;
  /// Makes the call end soon if it has not ended.
  virtual void give_up(std::uint64_t ticket) = 0;
};

/// A Language Server Protocol server on top of a server's edit sessions: it decides what to answer and what to call,
/// without sockets and threads. A handler never blocks. Each document has at most one call that changes its session,
/// one running and one waiting completion, and one edit. A newer completion replaces an older one.
///
/// With the editor's setting `nextEdits`, a pause after a change starts a proposal for the next one (next_edits.cpp).
/// Inline completions are then its lines at the cursor, and a code action makes all of it.
class language_server {
 public:
  using instant = std::chrono::steady_clock::time_point;

  static constexpr std::size_t documents_max = 512;
  static constexpr std::size_t sessions_max = 32;  // the least recently used is closed, and reopened when needed
  static constexpr std::size_t edits_max = 4;      // at a time
  static constexpr std::size_t instruction_bytes_max = 4096;
  static constexpr std::size_t instructions_max = 16;  // offered by the editor's settings
  static constexpr std::size_t questions_max = 64;     // unanswered questions to the editor
  static constexpr std::size_t next_edit_bytes_max = 256 << 10;  // larger documents get no proposals
  static constexpr std::chrono::milliseconds next_edit_pause{75};
  static constexpr std::chrono::seconds retry_min{1};
  static constexpr std::chrono::seconds retry_max{30};
  static constexpr std::chrono::seconds retry_full{10};  // if the server does not give a time

  struct options {
    std::string version;
    std::string server;  // its URL, for messages
    std::uint32_t tokens_max = 64;
    bool is_there = true;  // false: it is starting; call `server_started` then
    std::function<instant()> now = [] { return std::chrono::steady_clock::now(); };
  };
  language_server(options how, std::function<void(const json&)> send, call_desk& desk);
  language_server(const language_server&) = delete;
  language_server& operator=(const language_server&) = delete;

  /// Handles a message's body.
  void take(std::string_view body);
  /// Answers a message that could not be read.
  void refuse_unread(const std::string& why);

  void server_started();
  /// The server has ended, and another one is starting.
  void server_ended();
  void server_failed(const std::string& why);
  void finished(std::uint64_t ticket, server_reply reply);
  /// bytes: the length of an edit's answer so far.
  void progressed(std::uint64_t ticket, std::size_t bytes);

  /// When `wake` is due for postponed work.
  [[nodiscard]] std::optional<instant> wakes_at() const;
  void wake();

  /// Does what `exit` does, at the end of the stream.
  void stop();
  [[nodiscard]] bool is_over() const { return over_; }
  [[nodiscard]] int exit_code() const { return shut_down_ ? 0 : 1; }
  /// True while sessions are still being closed after the end.
  [[nodiscard]] bool has_farewells() const { return !tasks_.empty() && link_ == link::up; }

 private:
  enum class link : std::uint8_t { starting, up, down, failed };
  enum class complaint : std::uint8_t { server, full, documents };
  enum class message_type : std::uint8_t { error = 1, warning = 2, info = 3, log = 4 };

  struct completion {
    json id;
    bool is_inline = false;
    text::text_position at;
    std::size_t byte = 0;
    std::uint64_t ticket = 0;  // 0 while it waits
    bool is_second_try = false;
  };
  /// The next edit of a document, for one of its revisions.
  struct proposal {
    std::optional<instant> due{};     // when it is asked for; absent if it was, or need not be
    std::uint64_t ticket = 0;         // of the call that computes it
    std::int64_t revision = 0;        // for which `edits` are; 0 means none
    std::vector<line_edit> edits{};
    std::optional<completion> asked{};  // an inline completion that waits for it
  };
  struct open_document {
    std::string uri;
    std::string path;
    json version;
    edited_document text;
    std::string session;        // empty if there is none
    std::uint64_t sync = 0;     // ticket of the call that changes it
    std::uint64_t used = 0;     // a use counter, for the least recently used
    bool wants_session = true;  // false after it was closed in favor of others
    bool refused = false;       // the server does not accept this text
    std::uint32_t failures = 0;
    instant not_before{};
    std::optional<completion> waiting, running;
    std::string told{};      // the text against which the last changes are told
    std::size_t cursor = 0;  // the byte behind the last change
    proposal next{};
  };
  struct edit {
    json id;
    std::string uri;
    std::string instruction;
    std::optional<text::position_range> where;
    json token;  // for progress; null if the editor shows none
    bool is_shown = false;
    std::size_t bytes = 0;      // size of the edited text
    int percent = -1;           // the last percentage shown
    std::uint64_t ticket = 0;   // 0 while it waits for its session
    std::int64_t revision = 0;  // the document's revision
    std::uint32_t losses = 0;   // losses of its session
    bool is_applying = false;
  };
  struct task {
    enum class kind : std::uint8_t { open, patch, close, complete, edit, next_edit, probe };
    kind what = kind::close;
    std::string uri;
    std::uint64_t edit = 0;
  };
  struct handler {
    rpc_message::kind of;
    void (language_server::*run)(const rpc_message&);
  };
  static const std::map<std::string_view, handler> handlers;

  // ---- messages
  void on_response(const rpc_message& m);
  void initialize(const rpc_message& m);
  void initialized(const rpc_message&) {}
  void shutdown(const rpc_message& m);
  void exit(const rpc_message&) { stop(); }
  void did_open(const rpc_message& m);
  void did_change(const rpc_message& m);
  void did_close(const rpc_message& m);
  void complete(const rpc_message& m);
  void code_action(const rpc_message& m);
  void execute(const rpc_message& m);
  void cancel_request(const rpc_message& m);
  void cancel_progress(const rpc_message& m);
  void say_farewell();

  // ---- documents and their sessions
  open_document* find(const std::string& uri);
  void forget(std::map<std::string, open_document>::iterator at);
  void tell_unusable(const open_document& d);
  void use(open_document& d);
  void pump(open_document& d);
  void pump_all();
  void drop_session(open_document& d, bool is_there);
  void synced(open_document& d, const task& was, server_reply reply);
  void keep_sessions(std::size_t most);

  // ---- completions and edits
  void answer_empty(std::optional<completion>& one);
  void completed(open_document& d, const server_reply& reply);
  void begin_edit(std::uint64_t number, open_document& d);
  void edited(std::uint64_t number, const server_reply& reply);
  void end_edit(std::uint64_t number, const outcome<json, rpc_error>& how);
  void cancel_edit(std::uint64_t number);
  enum class which : std::uint8_t { waiting, all };
  /// Except edits that the editor is applying.
  void end_edits_of(const std::string& uri, which ones, const rpc_error& why);
  void show_progress(std::uint64_t number);
  void apply(std::uint64_t number, const std::vector<line_edit>& edits);

  // ---- next edits
  void expect_next_edit(open_document& d);
  void drop_next_edit(open_document& d);
  void begin_next_edit(open_document& d);
  void proposed(open_document& d, const server_reply& reply);
  void complete_by_next_edit(open_document& d, completion asked);
  [[nodiscard]] json next_edit_items(const open_document& d, text::text_position at) const;
  void add_next_edit(const open_document& d, json& actions) const;
  [[nodiscard]] json workspace_edit(const open_document& d, const std::vector<line_edit>& edits) const;

  // ---- the link to the server
  void note(const server_reply& reply);
  void lose(const std::string& why, std::chrono::seconds least, bool probes);
  /// The reason why no calls are made now.
  [[nodiscard]] std::string why_not() const;
  void is_fine();
  /// Ends the text with exactly one full stop.
  static std::string sentence(std::string text);
  void complain(complaint about, message_type type, const std::string& text);
  void show(message_type type, const std::string& text);

  std::uint64_t start(task what, server_call call);
  void ask(std::string_view method, json params, std::function<void(const rpc_message&)> then);
  void answer(const json& id, json result) { send_(rpc_result(id, std::move(result))); }
  void refuse(const json& id, rpc_code code, const std::string& why) { send_(rpc_refusal(id, {code, why})); }

  options how_;
  std::function<void(const json&)> send_;
  call_desk& desk_;
  bool initialized_ = false;
  bool shut_down_ = false;
  bool over_ = false;

  text::position_encoding units_ = text::position_encoding::utf16;
  bool client_applies_ = false, client_versions_edits_ = false, client_shows_progress_ = false,
       client_takes_actions_ = false;
  bool proposes_ = false;  // next edits
  std::vector<std::string> instructions_;

  std::map<std::string, open_document> documents_;
  std::map<std::uint64_t, edit> edits_;
  std::map<std::uint64_t, task> tasks_;
  std::map<std::int64_t, std::function<void(const rpc_message&)>> questions_;
  std::uint64_t last_ticket_ = 0, last_edit_ = 0, last_use_ = 0;
  std::int64_t last_question_ = 0;

  link link_ = link::up;
  bool probes_ = false;  // whether to retry a probe or the calls themselves
  bool is_probing_ = false;
  std::string why_down_;
  instant retry_at_{};
  std::chrono::seconds retry_{retry_min};
  std::set<complaint> complained_;
};

}  // namespace redline::actors::cli::lsp
