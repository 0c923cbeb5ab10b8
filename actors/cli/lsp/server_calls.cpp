#include "actors/cli/lsp/server_calls.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include "actors/cli/lsp/rpc_message.hpp"
#include "actors/prompts/edit_prompt.hpp"
#include "runtime/base/strict_json.hpp"
#include "runtime/base/utf8.hpp"
#include "transport/http_client.hpp"

namespace redline::actors::cli::lsp {
namespace {

using kind = server_reply::kind;

// A running server answers at once if a call computes nothing.
constexpr std::chrono::milliseconds quick_silence_max{30'000};
// While a server reads a long prompt, it sends nothing.
constexpr std::chrono::milliseconds answer_silence_max{600'000};
constexpr std::chrono::milliseconds connect_max{5'000};
constexpr std::size_t why_bytes_max = 400;
constexpr std::uint64_t answer_bytes_max = 8 << 20;
constexpr const char* sessions_path = "/v1/redline/sessions";

server_reply reply(kind what, std::string why) {
  server_reply out;
  out.what = what;
  out.why = std::move(why);
  return out;
}

server_reply reply_of(const failure& why) {
  switch (why.code) {
    case errc::cancelled:
      return reply(kind::cancelled, why.context);
    case errc::malformed_message:
      return reply(kind::foreign, why.context);
    case errc::unusable_answer:
    case errc::invalid_argument:
      return reply(kind::refused, why.context);
    default:
      return reply(kind::gone, why.context);
  }
}

class connection {
 public:
  connection(const server_address& at, const std::atomic<bool>& given_up) : at_(at) { options_.given_up = &given_up; }

  /// The answer's object, or null if the answer has none.
  std::variant<json, server_reply> ask(std::string_view method, const std::string& path, const json& body,
                                       std::chrono::milliseconds silence) {
    bound(silence);
    const auto answer =
        transport::http_call(method, to(path), at_.headers, body.is_null() ? "" : dump_json(body), options_);
    if (!answer) return reply_of(answer.error());
    if (answer->status / 100 != 2) return judge(answer->status, answer->body, answer->header("retry-after"));
    if (answer->body.empty()) return json();
    auto parsed = parse_json<json>(answer->body);
    if (!parsed) return reply(kind::foreign, "the server's answer is " + parsed.error().context);
    return std::move(*parsed);
  }

  /// The answer of a chat as it streams in, or the failure.
  std::variant<edit_answer, server_reply> stream(const std::string& path, const json& body,
                                                 const std::function<void(std::size_t)>& on_bytes) {
    bound(answer_silence_max);
    edit_answer out;
    std::string& text = out.text;
    std::optional<server_reply> broken;
    bool is_done = false;
    const auto take = [&](const transport::sse_event& event) {
      if (event.data == "[DONE]") {
        is_done = true;
        return true;
      }
      const auto parsed = parse_json<json>(event.data);
      if (!parsed) {
        broken = reply(kind::foreign, "the server's event is " + parsed.error().context);
        return false;
      }
      if (const json& error = member(*parsed, "error"); !error.is_null()) {
        broken = reply(kind::refused, "the server says: " + text_of(member(error, "message")));
        return false;
      }
      if (const json& choices = member(*parsed, "choices"); choices.is_array() && !choices.empty()) {
        text += text_of(member(choices[0], "delta", "content"));
        const std::string finish = text_of(member(choices[0], "finish_reason"));
        if (!finish.empty()) out.is_whole = is_models_own_end(finish);
      }
      if (text.size() > answer_bytes_max) {
        broken = reply(kind::refused, "the answer has more than " + std::to_string(answer_bytes_max) + " bytes");
        return false;
      }
      on_bytes(text.size());
      return true;
    };
    const auto answer = transport::http_post_stream(to(path), at_.headers, dump_json(body), take, options_);
    if (broken) return *broken;
    if (!answer) return reply_of(answer.error());
    if (answer->status / 100 != 2) return judge(answer->status, answer->body, answer->header("retry-after"));
    if (!is_done) return reply(kind::gone, "the server's answer ended early");
    return out;
  }

 private:
  [[nodiscard]] transport::http_url to(const std::string& path) const {
    auto url = at_.url;
    url.target += path;
    return url;
  }
  void bound(std::chrono::milliseconds silence) {
    options_.connect_timeout = connect_max;
    options_.silence_timeout = silence;
  }

  const server_address& at_;
  transport::http_client_options options_;
};

std::string session_of(const std::string& id) { return std::string(sessions_path) + "/" + id; }

server_reply make(connection& to, const open_call& c) {
  const json body = {{"position_encoding", "utf-8"},
                     {"files", {{{"path", c.path}, {"text", c.text}, {"version", c.revision}}}}};
  auto got = to.ask("POST", sessions_path, body, quick_silence_max);
  if (auto* why = std::get_if<server_reply>(&got)) return std::move(*why);
  server_reply out;
  out.session = text_of(member(std::get<json>(got), "id"));
  // The id becomes part of paths.
  if (out.session.empty() || out.session.find_first_of("/?#% \r\n") != std::string::npos) {
    return reply(kind::foreign, "the server's answer has no valid session id");
  }
  return out;
}

server_reply make(connection& to, const patch_call& c) {
  json edits = json::array();
  for (const byte_edit& e : c.changes.edits) {
    json one = {{"text", e.text}};
    if (e.where) one["bytes"] = {{"start", e.where->begin}, {"end", e.where->end}};
    edits.push_back(std::move(one));
  }
  const json body = {{"base_version", c.changes.base}, {"version", c.changes.next}, {"edits", std::move(edits)}};
  auto got = to.ask("PATCH", session_of(c.session) + "/files/" + c.path, body, quick_silence_max);
  if (auto* why = std::get_if<server_reply>(&got)) return std::move(*why);
  return {};
}

server_reply make(connection& to, const close_call& c) {
  auto got = to.ask("DELETE", session_of(c.session), {}, quick_silence_max);
  if (auto* why = std::get_if<server_reply>(&got)) return std::move(*why);
  return {};
}

server_reply make(connection& to, const complete_call& c) {
  const json body = {
      {"path", c.path}, {"version", c.revision}, {"position", {{"byte", c.byte}}}, {"max_tokens", c.tokens_max}};
  auto got = to.ask("POST", session_of(c.session) + "/complete", body, answer_silence_max);
  if (auto* why = std::get_if<server_reply>(&got)) return std::move(*why);
  const json& choices = member(std::get<json>(got), "choices");
  if (!choices.is_array() || choices.empty()) return reply(kind::foreign, "the server's answer has no choice");
  server_reply out;
  out.text = text_of(member(choices[0], "text"));
  return out;
}

server_reply make(connection& to, const edit_call& c, const std::function<void(std::size_t)>& on_bytes) {
  const edit_task task{c.path, c.before, c.instruction};
  if (const auto checked = check_editable(task); !checked) return reply(kind::refused, checked.error().context);
  auto got =
      c.session.empty()
          ? to.stream("/v1/chat/completions",
                      {{"messages", {{{"role", "user"}, {"content", message_of(task)}}}},
                       {"temperature", 0},
                       {"stream", true},
                       {"prediction", {{"type", "content"}, {"content", shown_file(task)}}}},
                      on_bytes)
          : to.stream(session_of(c.session) + "/edit",
                      {{"path", c.path}, {"version", c.revision}, {"instruction", c.instruction}, {"stream", true}},
                      on_bytes);
  if (auto* why = std::get_if<server_reply>(&got)) return std::move(*why);
  const auto after = file_of_answer(task, std::get<edit_answer>(got));
  if (!after) return reply(kind::refused, after.error().context);
  const auto before = text::text_document::make(c.before, edited_document::bytes_max);
  if (!before) return reply(kind::refused, before.error().context);
  server_reply out;
  out.edits = line_edits(*before, *after, c.units);
  for (line_edit& e : out.edits) {
    e.where.begin.line += c.first_line;
    e.where.end.line += c.first_line;
  }
  return out;
}

server_reply make(connection& to, const next_edit_call& c) {
  const json body = {{"file_path", c.path},
                     {"file_contents", c.text},
                     {"cursor_position", c.byte},
                     {"use_bytes", true},
                     {"recent_changes", c.changes}};
  auto got = to.ask("POST", "/backend/next_edit_autocomplete", body, answer_silence_max);
  if (auto* why = std::get_if<server_reply>(&got)) return std::move(*why);
  const json& said = std::get<json>(got);
  const json &begin = member(said, "start_index"), &end = member(said, "end_index");
  const bool is_range = begin.is_number_unsigned() && end.is_number_unsigned() &&
                        begin.get<std::size_t>() <= end.get<std::size_t>() && end.get<std::size_t>() <= c.text.size();
  if (!is_range) return reply(kind::foreign, "the server's answer has no range of the file");
  std::string after = c.text;
  after.replace(begin.get<std::size_t>(), end.get<std::size_t>() - begin.get<std::size_t>(),
                text_of(member(said, "completion")));
  const auto before = text::text_document::make(c.text, edited_document::bytes_max);
  if (!before) return reply(kind::refused, before.error().context);
  server_reply out;
  out.edits = line_edits(*before, after, c.units);
  return out;
}

server_reply make(connection& to, const probe_call&) {
  auto got = to.ask("GET", "/readyz", {}, quick_silence_max);
  if (auto* why = std::get_if<server_reply>(&got)) return std::move(*why);
  return {};
}

}  // namespace

server_reply judge(unsigned status, const std::string& body, const std::string* retry_after) {
  const auto parsed = parse_json<json>(body);
  const json& error = parsed ? member(*parsed, "error") : member(json(), "error");
  const std::string code = text_of(member(error, "code"));
  std::string why = text_of(member(error, "message"));
  if (why.empty()) why = "HTTP status " + std::to_string(status);
  if (why.size() > why_bytes_max) why.resize(utf8::valid_prefix_bytes(std::string_view(why).substr(0, why_bytes_max)));
  const auto later = [&](kind what) {
    server_reply out = reply(what, std::move(why));
    std::int64_t seconds = 0;
    if (retry_after != nullptr)
      std::from_chars(retry_after->data(), retry_after->data() + retry_after->size(), seconds);
    out.retry_after = std::chrono::seconds(std::clamp<std::int64_t>(seconds, 0, 3600));
    return out;
  };
  switch (status) {
    case 401:
    case 403:
      return reply(kind::unauthorized, "it requires an API key (" + why + "); pass one with --api-key");
    case 404:
      if (code == "session_not_found" || code == "file_not_found") return reply(kind::lost, std::move(why));
      if (code == "model_not_found") return reply(kind::refused, std::move(why));
      return reply(kind::foreign, "it has no edit sessions: it is not a Redline server, or an older version");
    case 405:
      return reply(kind::foreign, "its edit sessions are not those of this version: " + why);
    case 409:
      return reply(kind::stale, std::move(why));
    case 429:
      return later(kind::full);
    case 502:
      return later(kind::gone);
    case 503:
      return later(code == "overloaded" || code == "session_lost" ? kind::full : kind::gone);
    default:
      return reply(kind::refused, std::move(why));
  }
}

server_reply server_calls::make(const server_call& what, const std::atomic<bool>& given_up,
                                const std::function<void(std::size_t)>& on_bytes) const {
  connection to(at_, given_up);
  if (const auto* edit = std::get_if<edit_call>(&what)) return lsp::make(to, *edit, on_bytes);
  return std::visit(
      [&](const auto& c) -> server_reply {
        if constexpr (std::is_same_v<std::decay_t<decltype(c)>, edit_call>)
          return {};
        else
          return lsp::make(to, c);
      },
      what);
}

}  // namespace redline::actors::cli::lsp
