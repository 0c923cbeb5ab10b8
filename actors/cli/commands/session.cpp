// Edit sessions of a running server, for scripts. Each command is one HTTP call.

#include <charconv>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>

#include "actors/cli/command.hpp"
#include "actors/cli/commands/commands.hpp"
#include "actors/cli/commands/difference.hpp"
#include "actors/cli/flags/command_line.hpp"
#include "actors/cli/json_members.hpp"
#include "actors/cli/server_address.hpp"
#include "actors/prompts/edit_prompt.hpp"
#include "runtime/text/text_document.hpp"
#include "transport/http_client.hpp"

namespace redline::actors::cli {
namespace {

using json = nlohmann::ordered_json;

struct session_flags {
  std::string server = "http://127.0.0.1:8080";
  std::string api_key;
  std::string id;
  std::string path;
  std::vector<std::string> files;
  std::string units = "utf-16";
  std::string cache_policy = "exact";
  std::string range;
  std::string bytes;
  std::string text;
  std::string to;
  std::string at;
  std::string mode;
  std::string instruction;
  std::int64_t version = 0;
  std::uint32_t tokens_max = 0;
  double temperature = 0;
  std::uint64_t seed = 0;
  bool no_recompute = false;
  bool json = false;
  bool apply = false;
};

std::string percent_encoded(std::string_view text) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/";
  constexpr char digits[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (plain.find(c) != std::string_view::npos)
      out.push_back(c);
    else
      out.append({'%', digits[byte >> 4], digits[byte & 15]});
  }
  return out;
}

/// Parses a number that must be the whole of `text`.
template<class Number>
result<Number> number_of(std::string_view text, const std::string& wanted) {
  Number n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (!text.empty() && error == std::errc() && end == text.data() + text.size()) return n;
  return failure{errc::invalid_argument, "expected " + wanted + ", found '" + std::string(text) + "'"};
}

/// Parses "LINE:CHARACTER", both from 0.
result<json> position_of(std::string_view text) {
  const std::string wanted = "LINE:CHARACTER, counted from 0";
  const auto colon = text.find(':');
  if (colon == std::string_view::npos)
    return failure{errc::invalid_argument, "expected " + wanted + ", found '" + std::string(text) + "'"};
  REDLINE_TRY_ASSIGN(const auto line, number_of<std::uint32_t>(text.substr(0, colon), wanted));
  REDLINE_TRY_ASSIGN(const auto character, number_of<std::uint32_t>(text.substr(colon + 1), wanted));
  return json{{"line", line}, {"character", character}};
}

/// Splits "A-B". "A" means the empty range at A.
std::pair<std::string_view, std::string_view> ends_of(std::string_view range) {
  const auto dash = range.find('-');
  if (dash == std::string_view::npos) return {range, range};
  return {range.substr(0, dash), range.substr(dash + 1)};
}

/// A server's edit sessions.
class session_client {
 public:
  explicit session_client(server_address server) : server_(std::move(server)) {}

  /// The JSON answer, or null if there is none. A refusal becomes a failure with the server's text.
  result<json> call(std::string_view method, const std::string& path, const json& body = {}) const {
    std::string text;
    try {
      if (!body.is_null()) text = body.dump();
    } catch (const json::exception&) {
      return failure{errc::invalid_argument, "expected text in UTF-8, which JSON requires, found other bytes"};
    }
    auto url = server_.url;
    url.target += "/v1/redline/sessions" + path;
    REDLINE_TRY_ASSIGN(const auto answer, transport::http_call(method, url, server_.headers, text));
    const json parsed = answer.body.empty() ? json() : json::parse(answer.body, nullptr, false);
    if (answer.status / 100 == 2 && !parsed.is_discarded()) return parsed;
    std::string why = "HTTP status " + std::to_string(answer.status);
    if (parsed.is_object() && parsed.contains("error") && parsed["error"].is_object()) {
      why += ": " + parsed["error"].value("message", std::string("no reason given"));
    }
    return failure{answer.status == 409 ? errc::version_conflict : errc::invalid_argument,
                   "the server refused: " + why};
  }
  [[nodiscard]] static std::string file(const session_flags& f) {
    return "/" + f.id + "/files/" + percent_encoded(f.path);
  }

 private:
  server_address server_;
};

result<void> print_new(const session_client& server, const session_flags& f) {
  json body = {{"position_encoding", f.units},
               {"files", json::array()},
               {"cache", {{"policy", f.cache_policy}, {"healing", !f.no_recompute}}}};
  for (const auto& path : f.files) {
    REDLINE_TRY_ASSIGN(const auto text, read_whole(path));
    body["files"].push_back({{"path", path}, {"text", text}});
  }
  REDLINE_TRY_ASSIGN(const auto made, server.call("POST", "", body));
  print_text((f.json ? made.dump() : text_of(member(made, "id"))) + "\n");
  return {};
}

/// The edit that turns the server's text into that of `f.to`, without their common beginning and end.
result<json> edit_towards(const std::string& before, const session_flags& f) {
  REDLINE_TRY_ASSIGN(const auto after, read_whole(f.to));
  const auto starts_character = [](const std::string& s, std::size_t i) {
    return i >= s.size() || (static_cast<unsigned char>(s[i]) & 0xC0) != 0x80;
  };
  const std::size_t shorter = std::min(before.size(), after.size());
  std::size_t front = 0;
  while (front < shorter && before[front] == after[front]) ++front;
  while (!starts_character(before, front) || !starts_character(after, front)) --front;
  std::size_t back = 0;
  while (back < shorter - front && before[before.size() - 1 - back] == after[after.size() - 1 - back]) ++back;
  while (!starts_character(before, before.size() - back)) --back;
  return json{{"bytes", {{"start", front}, {"end", before.size() - back}}},
              {"text", after.substr(front, after.size() - back - front)}};
}

result<json> edit_of(const session_client& server, const session_flags& f) {
  if (!f.to.empty()) {
    REDLINE_TRY_ASSIGN(const auto file, server.call("GET", session_client::file(f)));
    return edit_towards(file.value("text", std::string()), f);
  }
  json edit;
  if (!f.range.empty()) {
    const auto [begin, end] = ends_of(f.range);
    REDLINE_TRY_ASSIGN(edit["range"]["start"], position_of(begin));
    REDLINE_TRY_ASSIGN(edit["range"]["end"], position_of(end));
  } else if (!f.bytes.empty()) {
    const auto [begin, end] = ends_of(f.bytes);
    REDLINE_TRY_ASSIGN(edit["bytes"]["start"], number_of<std::uint64_t>(begin, "byte offsets START-END"));
    REDLINE_TRY_ASSIGN(edit["bytes"]["end"], number_of<std::uint64_t>(end, "byte offsets START-END"));
  }
  edit["text"] = f.text;
  return edit;
}

result<std::int64_t> next_version(const session_client& server, const session_flags& f) {
  if (f.version > 0) return f.version;
  REDLINE_TRY_ASSIGN(const auto file, server.call("GET", session_client::file(f)));
  return file.value("version", std::int64_t{0}) + 1;
}

result<void> print_patch(const session_client& server, const session_flags& f) {
  REDLINE_TRY_ASSIGN(const auto edit, edit_of(server, f));
  REDLINE_TRY_ASSIGN(const auto version, next_version(server, f));
  REDLINE_TRY_ASSIGN(const auto done, server.call("PATCH", session_client::file(f),
                                                  {{"version", version}, {"edits", json::array({edit})}}));
  if (f.json) {
    print_text(done.dump() + "\n");
  } else {
    std::cout << "version " << done.value("version", 0) << ": " << done.value("tokens", 0) << " tokens, "
              << done.value("tokens_removed", 0) << " removed, " << done.value("tokens_inserted", 0) << " inserted, "
              << done.value("kv", json::object()).value("stale", 0) << " of the next prompt stale in the cache\n";
  }
  return {};
}

result<void> print_completion(const session_client& server, const session_flags& f) {
  json body = {{"path", f.path}, {"temperature", f.temperature}};
  if (!f.at.empty()) {
    REDLINE_TRY_ASSIGN(body["position"], position_of(f.at));
  }
  if (!f.mode.empty()) body["mode"] = f.mode;
  if (f.tokens_max > 0) body["max_tokens"] = f.tokens_max;
  if (f.seed > 0) body["seed"] = f.seed;
  REDLINE_TRY_ASSIGN(const auto done, server.call("POST", "/" + f.id + "/complete", body));
  if (f.json) {
    print_text(done.dump() + "\n");
    return {};
  }
  if (!done.contains("choices") || !done["choices"].is_array() || done["choices"].empty()) {
    return failure{errc::malformed_message, "the server's answer has no choice"};
  }
  print_text(text_of(member(done["choices"][0], "text")) + "\n");
  return {};
}

result<void> print_edit(const session_client& server, const session_flags& f) {
  REDLINE_TRY_ASSIGN(const auto file, server.call("GET", session_client::file(f)));
  const edit_task task{f.path, file.value("text", std::string()), f.instruction};
  const auto version = file.value("version", std::int64_t{0});
  json body = {{"path", f.path}, {"instruction", f.instruction}, {"version", version}};
  if (f.tokens_max > 0) body["max_tokens"] = f.tokens_max;
  REDLINE_TRY_ASSIGN(const auto done, server.call("POST", "/" + f.id + "/edit", body));
  if (!done.contains("choices") || !done["choices"].is_array() || done["choices"].empty()) {
    return failure{errc::malformed_message, "the server's answer has no choice"};
  }
  const json& choice = done["choices"][0];
  REDLINE_TRY_ASSIGN(const auto after,
                     file_of_answer(task, {.text = text_of(member(choice, "message", "content")),
                                           .is_whole = is_models_own_end(text_of(member(choice, "finish_reason")))}));
  if (f.apply) {
    REDLINE_TRY(server.call("PUT", session_client::file(f), {{"text", after}, {"version", version + 1}}));
  }
  if (f.json)
    print_text(json{{"text", after}, {"usage", done.value("usage", json())}}.dump() + "\n");
  else
    print_difference(f.path, task.before, after);
  return {};
}

result<void> print_shown(const session_client& server, const session_flags& f) {
  REDLINE_TRY_ASSIGN(const auto shown, server.call("GET", f.path.empty() ? "/" + f.id : session_client::file(f)));
  if (!f.path.empty() && !f.json)
    print_text(text_of(member(shown, "text")));
  else
    print_text(shown.dump(f.json ? -1 : 2) + "\n");
  return {};
}

result<void> close(const session_client& server, const session_flags& f) {
  REDLINE_TRY(server.call("DELETE", "/" + f.id));
  return {};
}

}  // namespace

void add_session(CLI::App& app, int& exit_code) {
  auto f = std::make_shared<session_flags>();
  const command all(app, "session",
                    "Work with edit sessions of a running server, which keeps files to edit and complete");
  all.require_command();
  using action = result<void> (*)(const session_client&, const session_flags&);
  const auto add = [&](const char* name, const char* help, action run) {
    const command c(all, name, help);
    c.add("--server", f->server, "URL of the server: http://HOST:PORT or https://HOST");
    c.add("--api-key", f->api_key, "The server's API key");
    c.add_flag("--json", f->json, "Print the server's answer as it is");
    c.on_run(exit_code, [f, run] {
      const auto server = server_address::parse(f->server, f->api_key);
      return report(server ? run(session_client(*server), *f) : result<void>(server.error()));
    });
    return c;
  };
  const auto add_id = [&](command c) { c.add("ID", f->id, "The session's id, as 'new' printed it").require(); };
  const auto add_path = [&](command c, bool required = true) {
    c.add("PATH", f->path, "A file of the session").require(required);
  };

  const command made = add("new", "Open a session with these files, and print its id", print_new);
  made.add("FILES", f->files, "Files to send, under the paths given here").existing_file();
  made.add("--position-encoding", f->units, "Unit of the characters in a position").one_of({"utf-8", "utf-16"});
  made.add("--cache-policy", f->cache_policy,
           "What happens to the KV of the text after an edit: exact recomputes it, pie moves it, conflict keeps it as "
           "it is")
      .one_of({"exact", "pie", "conflict"});
  made.add_flag("--no-recompute", f->no_recompute, "Do not recompute approximate KV in the background");

  const command patch = add("patch", "Change a file", print_patch);
  add_id(patch);
  add_path(patch);
  const option range = patch.add("--range", f->range,
                                 "The text to replace, LINE:CHARACTER-LINE:CHARACTER, counted from 0; a single "
                                 "LINE:CHARACTER inserts there");
  const option bytes = patch.add("--bytes", f->bytes, "The text to replace as byte offsets, START-END").exclude(range);
  const option to = patch.add("--to", f->to, "Make the file equal to this one; only the difference is sent")
                        .existing_file()
                        .exclude(range)
                        .exclude(bytes);
  patch.add("--text", f->text, "The new text; without --range or --bytes it replaces the whole file").exclude(to);
  patch.add("--version", f->version, "The file's version after the change; default: the next one")
      .range(std::int64_t{1}, std::numeric_limits<std::int64_t>::max())
      .hide_default();

  const command complete = add("complete", "Print a completion at a position", print_completion);
  add_id(complete);
  add_path(complete);
  complete.add("--at", f->at, "LINE:CHARACTER, counted from 0; default: the end of the file");
  complete
      .add("--mode", f->mode,
           "line and text continue at the position; fim fills in between the text before and after it")
      .one_of({"line", "text", "fim"});
  complete.add("--max-tokens", f->tokens_max, "Maximum number of tokens to generate; default: the server's")
      .hide_default();
  complete.add("--temperature", f->temperature, "0 always takes the most probable token");
  complete.add("--seed", f->seed, "Seed for a temperature above 0").hide_default();

  const command edit = add("edit", "Rewrite a file according to an instruction, and show the difference", print_edit);
  add_id(edit);
  add_path(edit);
  edit.add("-i,--instruction", f->instruction, "What to change, in words").require();
  edit.add("--max-tokens", f->tokens_max, "Maximum number of tokens to generate; default: what fits into the context")
      .hide_default();
  edit.add_flag("--apply", f->apply, "Store the result as the file's next version");

  const command show = add("show", "Print the session, or a file's text", print_shown);
  add_id(show);
  add_path(show, false);
  add_id(add("close", "End the session", close));
}

}  // namespace redline::actors::cli
