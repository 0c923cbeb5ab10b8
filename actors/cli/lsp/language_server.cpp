#include "actors/cli/lsp/language_server.hpp"

#include <algorithm>
#include <utility>

#include "actors/cli/lsp/completion_items.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/utf8.hpp"

namespace redline::actors::cli::lsp {
namespace {

constexpr const char* edit_command = "redline.edit";
constexpr const char* action_kind = "refactor.rewrite";
constexpr std::uint32_t failures_max = 3;  // failures of a document's session before it rests
constexpr std::uint32_t losses_max = 2;    // losses of an edit's session before the edit fails
constexpr std::uint32_t tokens_most = 4096;

std::string cut(std::string_view text, std::size_t bytes_max) {
  if (text.size() <= bytes_max) return std::string(text);
  return std::string(text.substr(0, utf8::valid_prefix_bytes(text.substr(0, bytes_max)))) + "\u2026";
}

text::position_encoding chosen_units(const json& offered) {
  if (offered.is_array()) {
    for (const json& one : offered) {
      if (one == "utf-8") return text::position_encoding::utf8;
      if (one == "utf-16") break;
    }
  }
  return text::position_encoding::utf16;  // every client supports it
}

/// The lines that a range touches, as bytes. A range that ends at the beginning of a line does not touch that line.
text::byte_range whole_lines(const text::text_document& in, const text::position_range& where) {
  auto last = where.end.line;
  if (where.end.character == 0 && last > where.begin.line) --last;
  const auto units = text::position_encoding::utf8;
  return {in.offset_near({where.begin.line, 0}, units), in.offset_near({last + 1, 0}, units)};
}

}  // namespace

const std::map<std::string_view, language_server::handler> language_server::handlers = {
    {"initialize", {rpc_message::kind::request, &language_server::initialize}},
    {"initialized", {rpc_message::kind::notification, &language_server::initialized}},
    {"shutdown", {rpc_message::kind::request, &language_server::shutdown}},
    {"exit", {rpc_message::kind::notification, &language_server::exit}},
    {"textDocument/didOpen", {rpc_message::kind::notification, &language_server::did_open}},
    {"textDocument/didChange", {rpc_message::kind::notification, &language_server::did_change}},
    {"textDocument/didClose", {rpc_message::kind::notification, &language_server::did_close}},
    {"textDocument/completion", {rpc_message::kind::request, &language_server::complete}},
    {"textDocument/inlineCompletion", {rpc_message::kind::request, &language_server::complete}},
    {"textDocument/codeAction", {rpc_message::kind::request, &language_server::code_action}},
    {"workspace/executeCommand", {rpc_message::kind::request, &language_server::execute}},
    {"$/cancelRequest", {rpc_message::kind::notification, &language_server::cancel_request}},
    {"window/workDoneProgress/cancel", {rpc_message::kind::notification, &language_server::cancel_progress}},
};

language_server::language_server(options how, std::function<void(const json&)> send, call_desk& desk)
    : how_(std::move(how)), send_(std::move(send)), desk_(desk) {
  if (!how_.is_there) link_ = link::starting;
}

// ---- messages ------------------------------------------------------------------------------------------------------

void language_server::take(std::string_view body) {
  const auto read = parse_rpc(body);
  if (!read) {
    log_line(log_level::warning, "lsp", "cannot read a message: " + read.error().why.message);
    return send_(rpc_refusal(read.error().id, read.error().why));
  }
  const rpc_message& m = *read;
  if (m.what == rpc_message::kind::response) return on_response(m);
  const bool is_request = m.what == rpc_message::kind::request;
  const auto found = handlers.find(m.method);
  if (found == handlers.end()) {
    if (is_request && !initialized_)
      return refuse(m.id, rpc_code::server_not_initialized, "expected 'initialize' first");
    if (is_request) refuse(m.id, rpc_code::method_not_found, "no method '" + cut(m.method, label_bytes_max) + "'");
    return;
  }
  if (found->second.of != m.what) {
    if (is_request) refuse(m.id, rpc_code::invalid_request, "'" + m.method + "' is a notification: expected no 'id'");
    return;
  }
  if (!initialized_ && m.method != "initialize" && m.method != "exit") {
    if (is_request) refuse(m.id, rpc_code::server_not_initialized, "expected 'initialize' before '" + m.method + "'");
    return;
  }
  if (shut_down_ && m.method != "exit") {
    if (is_request)
      refuse(m.id, rpc_code::invalid_request, "expected 'exit' after 'shutdown', found '" + m.method + "'");
    return;
  }
  (this->*found->second.run)(m);
}

void language_server::refuse_unread(const std::string& why) {
  log_line(log_level::warning, "lsp", "cannot read a message: " + why);
  refuse(nullptr, rpc_code::parse_error, why);
}

void language_server::on_response(const rpc_message& m) {
  if (!m.id.is_number_integer()) return;
  const auto found = questions_.extract(m.id.get<std::int64_t>());
  if (!found.empty()) found.mapped()(m);
}

void language_server::ask(std::string_view method, json params, std::function<void(const rpc_message&)> then) {
  if (questions_.size() >= questions_max) {
    const auto oldest = questions_.extract(questions_.begin());
    oldest.mapped()({.what = rpc_message::kind::response, .failed = true});
  }
  questions_[++last_question_] = std::move(then);
  send_(rpc_request(last_question_, method, std::move(params)));
}

void language_server::initialize(const rpc_message& m) {
  if (initialized_) return refuse(m.id, rpc_code::invalid_request, "expected 'initialize' once, found it again");
  initialized_ = true;
  const json& can = member(m.params, "capabilities");
  units_ = chosen_units(member(can, "general", "positionEncodings"));
  client_applies_ = member(can, "workspace", "applyEdit") == true;
  client_versions_edits_ = member(can, "workspace", "workspaceEdit", "documentChanges") == true;
  client_shows_progress_ = member(can, "window", "workDoneProgress") == true;
  client_takes_actions_ = member(can, "textDocument", "codeAction", "codeActionLiteralSupport").is_object();
  const json& wishes = member(m.params, "initializationOptions");
  if (const json& given = member(wishes, "instructions"); given.is_array()) {
    for (const json& one : given) {
      const std::string text = text_of(one);
      if (instructions_.size() == instructions_max) break;
      if (!is_whitespace(text) && text.size() <= instruction_bytes_max) instructions_.push_back(text);
    }
  }
  proposes_ = member(wishes, "nextEdits") == true;
  if (const json& most = member(wishes, "maxTokens"); most.is_number_unsigned()) {
    how_.tokens_max = std::clamp(most.get<std::uint32_t>(), 1U, tokens_most);
  }
  json capabilities = {{"positionEncoding", units_ == text::position_encoding::utf8 ? "utf-8" : "utf-16"},
                       {"textDocumentSync", {{"openClose", true}, {"change", 2}}},  // incremental
                       {"inlineCompletionProvider", true},
                       {"codeActionProvider", {{"codeActionKinds", {action_kind}}}},
                       {"executeCommandProvider", {{"commands", {edit_command}}, {"workDoneProgress", true}}}};
  // An editor that shows inline completions would show the text twice.
  if (!member(can, "textDocument", "inlineCompletion").is_object()) {
    capabilities["completionProvider"] = {{"resolveProvider", false}};
  }
  answer(m.id,
         {{"capabilities", std::move(capabilities)}, {"serverInfo", {{"name", "redline"}, {"version", how_.version}}}});
}

void language_server::shutdown(const rpc_message& m) {
  say_farewell();
  shut_down_ = true;
  answer(m.id, nullptr);
}

void language_server::stop() {
  if (over_) return;
  over_ = true;
  if (!shut_down_) say_farewell();
}

/// Stops work whose result is no longer needed, and closes the sessions on the server.
void language_server::say_farewell() {
  for (auto& [uri, d] : documents_) {
    answer_empty(d.waiting);
    answer_empty(d.running);
    drop_next_edit(d);
    drop_session(d, true);
  }
  while (!edits_.empty()) {
    end_edit(edits_.begin()->first, rpc_error{rpc_code::request_cancelled, "the language server is shutting down"});
  }
  documents_.clear();
}

void language_server::did_open(const rpc_message& m) {
  const json& document = member(m.params, "textDocument");
  const std::string uri = text_of(member(document, "uri"));
  if (uri.empty() || !member(document, "text").is_string()) return;
  if (const auto old = documents_.find(uri); old != documents_.end()) forget(old);
  if (documents_.size() >= documents_max) {
    return complain(complaint::documents, message_type::warning,
                    "Redline: " + std::to_string(documents_max) +
                        " documents are open, which is the maximum; close some to get completions in others.");
  }
  auto& d = documents_
                .emplace(uri, open_document{.uri = uri,
                                            .path = session_path(uri),
                                            .version = member(document, "version"),
                                            .text = edited_document(text_of(member(document, "text")))})
                .first->second;
  if (proposes_ && d.text.document()) d.told = d.text.document()->text();
  if (!d.text.document()) tell_unusable(d);
  use(d);
  pump(d);
}

void language_server::tell_unusable(const open_document& d) {
  const std::string text = "Redline gives no completions for " + d.path + ": " + d.text.complaint() + ".";
  const bool is_expected = d.text.complaint().starts_with("contains a zero byte");
  if (!is_expected)
    show(message_type::warning, text);
  else
    send_(rpc_notification("window/logMessage", {{"type", static_cast<int>(message_type::log)}, {"message", text}}));
}

void language_server::did_change(const rpc_message& m) {
  const json& document = member(m.params, "textDocument");
  open_document* d = find(text_of(member(document, "uri")));
  const json& changes = member(m.params, "contentChanges");
  if (d == nullptr || !changes.is_array()) return;
  const bool was_usable = d->text.document() != nullptr;
  d->version = member(document, "version");
  for (const json& change : changes) {
    const json& range = member(change, "range");
    if (!member(change, "text").is_string()) {
      d->text.lose("a change of it has no text, so its contents are unknown; close it and open it again");
    } else if (range.is_null()) {
      d->text.change(std::nullopt, text_of(member(change, "text")), units_);
      d->refused = false;
    } else if (const auto where = range_of(range)) {
      const std::string put = text_of(member(change, "text"));
      if (const auto* old = d->text.document()) d->cursor = old->offset_near(where->begin, units_) + put.size();
      d->text.change(*where, put, units_);
    } else {
      // From here on the text would differ from the editor's, until the editor sends the whole text.
      d->text.lose("a change of it could not be read (" + where.error().message +
                   "), so its contents are unknown; close it and open it again");
    }
  }
  // What is being computed for the older text is no longer needed.
  answer_empty(d->waiting);
  answer_empty(d->running);
  end_edits_of(d->uri, which::all,
               {rpc_code::content_modified, d->path + " was changed in the meantime; the edit was not made"});
  drop_next_edit(*d);
  if (!d->text.document()) {
    drop_session(*d, true);
    if (was_usable) tell_unusable(*d);
  } else if (proposes_) {
    expect_next_edit(*d);
  }
  use(*d);
  pump(*d);
}

void language_server::did_close(const rpc_message& m) {
  const auto at = documents_.find(text_of(member(m.params, "textDocument", "uri")));
  if (at != documents_.end()) forget(at);
}

void language_server::complete(const rpc_message& m) {
  const std::string uri = text_of(member(m.params, "textDocument", "uri"));
  const auto at = position_of(member(m.params, "position"));
  if (!at) return refuse(m.id, at.error().code, at.error().message);
  open_document* d = find(uri);
  if (d == nullptr) return refuse(m.id, rpc_code::invalid_params, "no document '" + cut(uri, 200) + "' is open");
  answer_empty(d->waiting);
  answer_empty(d->running);
  const bool is_inline = m.method == "textDocument/inlineCompletion";
  if (proposes_ && is_inline) return complete_by_next_edit(*d, {.id = m.id, .is_inline = true, .at = *at});
  d->waiting = completion{.id = m.id, .is_inline = is_inline, .at = *at};
  if (link_ != link::up || !d->text.document() || d->text.document()->text().empty()) return answer_empty(d->waiting);
  d->waiting->byte = d->text.document()->offset_near(*at, units_);
  use(*d);
  pump(*d);
}

void language_server::code_action(const rpc_message& m) {
  json actions = json::array();
  const open_document* d = find(text_of(member(m.params, "textDocument", "uri")));
  const auto range = range_of(member(m.params, "range"));
  if (!range) return refuse(m.id, range.error().code, range.error().message);
  const json& only = member(m.params, "context", "only");
  const bool is_wanted = !only.is_array() || std::any_of(only.begin(), only.end(), [](const json& one) {
    const std::string kind = text_of(one);
    return kind.empty() || kind == action_kind || kind == "refactor";
  });
  if (d == nullptr || !d->text.document() || !is_wanted) return answer(m.id, std::move(actions));
  const auto add = [&](const std::string& title, const std::string& instruction) {
    json argument = {{"uri", d->uri}};
    if (range->begin != range->end) argument["range"] = to_json(*range);
    if (!instruction.empty()) argument["instruction"] = instruction;
    json command = {{"title", title}, {"command", edit_command}, {"arguments", json::array({std::move(argument)})}};
    if (client_takes_actions_)
      actions.push_back({{"title", title}, {"kind", action_kind}, {"command", std::move(command)}});
    else
      actions.push_back(std::move(command));
  };
  add_next_edit(*d, actions);
  add("Edit with instruction \u2026", "");
  for (const std::string& one : instructions_) add("Edit: " + cut(one, label_bytes_max), one);
  answer(m.id, std::move(actions));
}

void language_server::execute(const rpc_message& m) {
  const auto bad = [&](const std::string& why) { refuse(m.id, rpc_code::invalid_params, why); };
  const std::string command = text_of(member(m.params, "command"));
  if (command != edit_command) {
    return bad("expected the command " + std::string(edit_command) + ", found '" + cut(command, label_bytes_max) + "'");
  }
  const json& arguments = member(m.params, "arguments");
  const json& given = arguments.is_array() && !arguments.empty() ? arguments[0] : arguments;
  edit e{.id = m.id, .uri = text_of(member(given, "uri")), .instruction = text_of(member(given, "instruction"))};
  if (e.uri.empty()) return bad("redline.edit: expected an argument {uri, instruction, range}, found no 'uri'");
  if (is_whitespace(e.instruction)) {
    return bad(
        "redline.edit: expected an 'instruction' that says what to change, found none; the editor must ask for one");
  }
  if (e.instruction.size() > instruction_bytes_max) {
    return bad("redline.edit: expected an instruction of at most " + std::to_string(instruction_bytes_max) +
               " bytes, found " + std::to_string(e.instruction.size()));
  }
  if (const json& range = member(given, "range"); !range.is_null()) {
    const auto where = range_of(range);
    if (!where) return bad("redline.edit: " + where.error().message);
    if (where->begin != where->end) e.where = *where;
  }
  open_document* d = find(e.uri);
  if (d == nullptr) return bad("redline.edit: no document '" + cut(e.uri, 200) + "' is open");
  const auto fail = [&](const std::string& why) { refuse(m.id, rpc_code::request_failed, why); };
  if (!d->text.document()) return fail(d->path + " cannot be edited: " + d->text.complaint());
  if (d->refused) return fail(d->path + " cannot be edited: the server refused it");
  if (link_ != link::up) return fail(why_not());
  if (edits_.size() >= edits_max) {
    return fail(std::to_string(edits_.size()) +
                " edits are in progress, which is the maximum; wait for one or cancel it");
  }
  if (std::any_of(edits_.begin(), edits_.end(), [&](const auto& one) { return one.second.uri == e.uri; })) {
    return fail("an edit of " + d->path + " is in progress; wait for it or cancel it");
  }
  const std::uint64_t number = ++last_edit_;
  const json& token = member(m.params, "workDoneToken");
  if (token.is_string() || token.is_number_integer()) e.token = token;
  e.revision = d->text.revision();
  const bool has_token = !e.token.is_null();
  edits_.emplace(number, std::move(e));
  if (has_token) {
    show_progress(number);
  } else if (client_shows_progress_) {
    const json made = "redline-edit-" + std::to_string(number);
    ask("window/workDoneProgress/create", {{"token", made}}, [this, number, made](const rpc_message& r) {
      const auto found = edits_.find(number);
      if (r.failed || found == edits_.end()) return;
      found->second.token = made;
      show_progress(number);
    });
  }
  begin_edit(number, *d);
}

void language_server::cancel_request(const rpc_message& m) {
  const json& id = member(m.params, "id");
  if (id.is_null()) return;
  const auto cancel = [&](std::optional<completion>& one) {
    if (!one || one->id != id) return;
    if (one->ticket != 0) desk_.give_up(one->ticket);
    one.reset();
    refuse(id, rpc_code::request_cancelled, "cancelled");
  };
  for (auto& [uri, d] : documents_) {
    cancel(d.waiting);
    cancel(d.running);
    cancel(d.next.asked);
  }
  const auto found = std::find_if(edits_.begin(), edits_.end(), [&](const auto& one) { return one.second.id == id; });
  if (found != edits_.end()) cancel_edit(found->first);
}

void language_server::cancel_progress(const rpc_message& m) {
  const json& token = member(m.params, "token");
  if (token.is_null()) return;
  const auto found =
      std::find_if(edits_.begin(), edits_.end(), [&](const auto& one) { return one.second.token == token; });
  if (found != edits_.end()) cancel_edit(found->first);
}

// ---- documents and their sessions ----------------------------------------------------------------------------------

language_server::open_document* language_server::find(const std::string& uri) {
  const auto at = documents_.find(uri);
  return at == documents_.end() ? nullptr : &at->second;
}

void language_server::forget(std::map<std::string, open_document>::iterator at) {
  open_document& d = at->second;
  answer_empty(d.waiting);
  answer_empty(d.running);
  drop_next_edit(d);
  end_edits_of(d.uri, which::all, {rpc_code::content_modified, d.path + " was closed in the meantime"});
  drop_session(d, true);
  documents_.erase(at);
}

void language_server::use(open_document& d) {
  d.used = ++last_use_;
  d.wants_session = true;
}

void language_server::drop_session(open_document& d, bool is_there) {
  const std::string session = std::exchange(d.session, {});
  if (session.empty() || !is_there || link_ != link::up) return;
  start({.what = task::kind::close}, close_call{session});
}

/// Closes the least recently used sessions until at most `most` are left.
void language_server::keep_sessions(std::size_t most) {
  for (;;) {
    std::size_t count = 0;
    open_document* longest_unused = nullptr;
    for (auto& [uri, d] : documents_) {
      if (d.session.empty() && d.sync == 0) continue;
      ++count;
      const bool is_idle = !d.session.empty() && d.sync == 0 && !d.running && !d.waiting;
      if (is_idle && (longest_unused == nullptr || d.used < longest_unused->used)) longest_unused = &d;
    }
    if (count <= most || longest_unused == nullptr) return;
    drop_session(*longest_unused, true);
    longest_unused->wants_session = false;
  }
}

/// Does the next thing that the document needs and that is possible now.
void language_server::pump(open_document& d) {
  if (link_ != link::up || shut_down_ || d.sync != 0) return;
  const bool rests = how_.now() < d.not_before;
  if (!d.text.document() || d.refused || rests) {
    answer_empty(d.waiting);
    end_edits_of(d.uri, which::waiting,
                 {rpc_code::request_failed, "the server does not accept " + d.path + " now; try again later"});
    return;
  }
  if (d.session.empty()) {
    if (!d.wants_session) return;
    keep_sessions(sessions_max - 1);
    d.text.mark_sent();
    d.sync = start({.what = task::kind::open, .uri = d.uri},
                   open_call{d.path, d.text.document()->text(), d.text.revision()});
    return;
  }
  if (!d.text.is_sent()) {
    d.sync = start({.what = task::kind::patch, .uri = d.uri}, patch_call{d.session, d.path, d.text.take_unsent()});
    return;
  }
  if (d.waiting) {
    d.running = std::exchange(d.waiting, std::nullopt);
    d.running->ticket = start({.what = task::kind::complete, .uri = d.uri},
                              complete_call{d.session, d.path, d.text.revision(), d.running->byte, how_.tokens_max});
  }
  for (auto& [number, e] : edits_) {
    if (e.uri != d.uri || e.ticket != 0 || e.is_applying) continue;
    e.ticket =
        start({.what = task::kind::edit, .uri = d.uri, .edit = number}, edit_call{.session = d.session,
                                                                                  .path = d.path,
                                                                                  .revision = d.text.revision(),
                                                                                  .before = d.text.document()->text(),
                                                                                  .instruction = e.instruction,
                                                                                  .units = units_});
  }
}

void language_server::pump_all() {
  // The least recently used come last, because there may not be sessions for all.
  std::vector<open_document*> all;
  for (auto& [uri, d] : documents_) all.push_back(&d);
  std::sort(all.begin(), all.end(), [](const auto* a, const auto* b) { return a->used > b->used; });
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i]->session.empty() && i >= sessions_max) all[i]->wants_session = false;
    pump(*all[i]);
  }
}

std::uint64_t language_server::start(task what, server_call call) {
  tasks_.emplace(++last_ticket_, std::move(what));
  const std::uint64_t ticket = last_ticket_;
  desk_.start(ticket, std::move(call));
  return ticket;
}

void language_server::finished(std::uint64_t ticket, server_reply reply) {
  const auto found = tasks_.extract(ticket);
  if (found.empty()) return;
  const task was = found.mapped();
  open_document* d = find(was.uri);
  switch (was.what) {
    case task::kind::close:
      return;
    case task::kind::probe:
      is_probing_ = false;
      if (link_ != link::down) return;  // the probe was for another server
      if (reply.what != server_reply::kind::done) return note(reply);
      link_ = link::up;
      return pump_all();
    case task::kind::open:
    case task::kind::patch:
      note(reply);
      if (d != nullptr && d->sync == ticket) return synced(*d, was, std::move(reply));
      // The document was closed meanwhile.
      if (!reply.session.empty() && link_ == link::up) start({.what = task::kind::close}, close_call{reply.session});
      return;
    case task::kind::complete:
      note(reply);
      if (d != nullptr && d->running && d->running->ticket == ticket) completed(*d, reply);
      return;
    case task::kind::next_edit:
      note(reply);
      if (d != nullptr && d->next.ticket == ticket) proposed(*d, reply);
      return;
    case task::kind::edit:
      note(reply);
      if (const auto e = edits_.find(was.edit); e != edits_.end() && e->second.ticket == ticket)
        edited(was.edit, reply);
      return;
  }
}

void language_server::synced(open_document& d, const task& was, server_reply reply) {
  using kind = server_reply::kind;
  d.sync = 0;
  if (was.what == task::kind::open) d.session = reply.session;
  switch (reply.what) {
    case kind::done:
      d.failures = 0;
      if (was.what == task::kind::open) complained_.erase(complaint::full);
      // If many sessions were opened at once, none could be closed earlier.
      keep_sessions(sessions_max);
      break;
    case kind::gone:
    case kind::unauthorized:
    case kind::foreign:
    case kind::cancelled:
      // It is unknown whether the change was made. The session ends by itself.
      drop_session(d, false);
      break;
    case kind::lost:
      ++d.failures;
      drop_session(d, false);
      break;
    case kind::full:
      d.not_before = how_.now() + (reply.retry_after.count() > 0 ? reply.retry_after : retry_full);
      drop_session(d, true);
      break;
    case kind::stale:
      ++d.failures;
      drop_session(d, true);
      break;
    case kind::refused:
      ++d.failures;
      drop_session(d, true);
      if (was.what == task::kind::open) {
        d.refused = true;
        show(message_type::warning, "Redline gives no completions for " + d.path + ": " + sentence(reply.why));
      }
      break;
  }
  if (d.failures >= failures_max) {
    d.failures = 0;
    d.not_before = how_.now() + retry_max;
    log_line(log_level::warning, "lsp", d.path + ": its session was lost repeatedly; the last reason: " + reply.why);
  }
  pump(d);
}

// ---- completions ---------------------------------------------------------------------------------------------------

void language_server::answer_empty(std::optional<completion>& one) {
  if (!one) return;
  const completion was = *std::exchange(one, std::nullopt);
  if (was.ticket != 0) desk_.give_up(was.ticket);
  answer(was.id, was.is_inline ? inline_items(was.at, "") : empty_list());
}

void language_server::completed(open_document& d, const server_reply& reply) {
  using kind = server_reply::kind;
  completion was = *std::exchange(d.running, std::nullopt);
  was.ticket = 0;
  if (reply.what == kind::done && d.text.document()) {
    answer(was.id, was.is_inline ? inline_items(was.at, reply.text)
                                 : completion_list(*d.text.document(), was.byte, units_, reply.text));
    return pump(d);
  }
  const bool is_lost = reply.what == kind::lost || reply.what == kind::stale;
  if (is_lost) {
    drop_session(d, reply.what == kind::stale);
    // Idle sessions end. The completion is retried once with another session.
    if (!was.is_second_try && !d.waiting) {
      was.is_second_try = true;
      d.waiting = std::move(was);
      return pump(d);
    }
  }
  if (reply.what == kind::refused) log_line(log_level::info, "lsp", "no completion: " + reply.why);
  std::optional<completion> none = std::move(was);
  answer_empty(none);
  pump(d);
}

// ---- edits ---------------------------------------------------------------------------------------------------------

void language_server::begin_edit(std::uint64_t number, open_document& d) {
  edit& e = edits_.at(number);
  const text::text_document& document = *d.text.document();
  e.bytes = document.text().size();
  use(d);
  if (!e.where) return pump(d);
  const auto lines = whole_lines(document, *e.where);
  e.bytes = lines.end - lines.begin;
  e.ticket = start({.what = task::kind::edit, .uri = d.uri, .edit = number},
                   edit_call{.path = d.path,
                             .revision = e.revision,
                             .before = document.text().substr(lines.begin, lines.end - lines.begin),
                             .first_line = document.position_of(lines.begin, units_).line,
                             .instruction = e.instruction,
                             .units = units_});
}

void language_server::edited(std::uint64_t number, const server_reply& reply) {
  using kind = server_reply::kind;
  edit& e = edits_.at(number);
  open_document* d = find(e.uri);
  if (d == nullptr || d->text.revision() != e.revision) {
    return end_edit(number, rpc_error{rpc_code::content_modified, "the document was changed in the meantime"});
  }
  if (reply.what == kind::done) return apply(number, reply.edits);
  const bool is_lost = reply.what == kind::lost || reply.what == kind::stale;
  if (is_lost && !e.where && ++e.losses < losses_max) {
    drop_session(*d, reply.what == kind::stale);
    e.ticket = 0;
    return pump(*d);
  }
  end_edit(number, rpc_error{reply.what == kind::cancelled ? rpc_code::request_cancelled : rpc_code::request_failed,
                             "the edit failed: " + reply.why});
}

void language_server::apply(std::uint64_t number, const std::vector<line_edit>& edits) {
  edit& e = edits_.at(number);
  if (edits.empty()) return end_edit(number, json{{"applied", false}, {"edits", 0}});
  json change = workspace_edit(*find(e.uri), edits);
  const auto count = edits.size();
  if (!client_applies_) {
    return end_edit(number, json{{"applied", false}, {"edits", count}, {"edit", std::move(change)}});
  }
  e.is_applying = true;
  ask("workspace/applyEdit", {{"label", "Redline: " + cut(e.instruction, label_bytes_max)}, {"edit", change}},
      [this, number, count](const rpc_message& r) {
        if (!edits_.contains(number)) return;
        if (member(r.result, "applied") == true) return end_edit(number, json{{"applied", true}, {"edits", count}});
        const std::string reason = text_of(member(r.result, "failureReason"));
        end_edit(number, rpc_error{rpc_code::request_failed, "the editor did not apply the edit" +
                                                                 (reason.empty() ? std::string() : ": " + reason)});
      });
}

json language_server::workspace_edit(const open_document& d, const std::vector<line_edit>& edits) const {
  json list = json::array(), out;
  for (const line_edit& one : edits) list.push_back({{"range", to_json(one.where)}, {"newText", one.text}});
  if (client_versions_edits_) {
    json document = {{"uri", d.uri}, {"version", d.version}};
    out["documentChanges"] = json::array({{{"textDocument", std::move(document)}, {"edits", std::move(list)}}});
  } else {
    out["changes"][d.uri] = std::move(list);
  }
  return out;
}

void language_server::progressed(std::uint64_t ticket, std::size_t bytes) {
  const auto found = tasks_.find(ticket);
  const auto at = found == tasks_.end() ? edits_.end() : edits_.find(found->second.edit);
  if (at == edits_.end() || at->second.ticket != ticket) return;
  edit& e = at->second;
  // The answer is about as long as the text; its actual length is known only at its end.
  const int percent = static_cast<int>(std::min<std::size_t>(99, bytes * 100 / std::max<std::size_t>(e.bytes, 1)));
  if (percent == e.percent) return;
  e.percent = percent;
  show_progress(at->first);
}

void language_server::show_progress(std::uint64_t number) {
  edit& e = edits_.at(number);
  if (e.token.is_null()) return;
  json value;
  if (!e.is_shown)
    value = {{"kind", "begin"},
             {"title", "Redline"},
             {"cancellable", true},
             {"message", cut(e.instruction, label_bytes_max)}};
  else
    value = {{"kind", "report"}, {"cancellable", true}};
  value["percentage"] = std::max(e.percent, 0);
  e.is_shown = true;
  send_(rpc_notification("$/progress", {{"token", e.token}, {"value", std::move(value)}}));
}

void language_server::end_edit(std::uint64_t number, const outcome<json, rpc_error>& how) {
  const auto found = edits_.extract(number);
  if (found.empty()) return;
  const edit& e = found.mapped();
  if (e.ticket != 0 && tasks_.contains(e.ticket)) desk_.give_up(e.ticket);
  if (e.is_shown) {
    const std::string message = !how                                     ? how.error().message
                                : member(*how, "edits") == json(0)       ? "no change"
                                : member(*how, "applied") == json(false) ? "not applied"
                                                                         : "done";
    send_(rpc_notification("$/progress", {{"token", e.token}, {"value", {{"kind", "end"}, {"message", message}}}}));
  }
  if (how)
    answer(e.id, *how);
  else
    refuse(e.id, how.error().code, how.error().message);
}

void language_server::cancel_edit(std::uint64_t number) {
  // Changes that the editor is applying cannot be undone from here.
  if (edits_.at(number).is_applying) return;
  end_edit(number, rpc_error{rpc_code::request_cancelled, "cancelled"});
}

void language_server::end_edits_of(const std::string& uri, which ones, const rpc_error& why) {
  std::vector<std::uint64_t> ending;
  for (const auto& [number, e] : edits_) {
    if (e.uri == uri && !e.is_applying && (ones == which::all || e.ticket == 0)) ending.push_back(number);
  }
  for (const std::uint64_t number : ending) end_edit(number, why);
}

}  // namespace redline::actors::cli::lsp
