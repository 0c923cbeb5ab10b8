#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/http/fields/api_error.hpp"
#include "actors/http/request/generation_request.hpp"
#include "actors/messages/edit_messages.hpp"
#include "runtime/kv/splice_policy.hpp"
#include "runtime/text/text_document.hpp"

/// Parses the bodies of edit session calls into the messages that forward them. `exchange` and `spec` stay empty.
namespace redline::api {

/// How KV changes after an edit, and whether inexact KV is recomputed in idle time.
struct cache_request {
  kv::splice_policy policy = kv::splice_policy::exact;
  bool heals = true;
};
/// "exact", "pie" or "conflict".
std::string_view name_of(kv::splice_policy policy);

struct open_session_request {
  std::string model;
  std::vector<actors::put_file> files;
  text::position_encoding units = text::position_encoding::utf16;
  std::int64_t idle_seconds_max = 0;
  cache_request cache;
};
checked<open_session_request> parse_open_session(std::string_view body, const actors::edit_limits& limits);

/// {"text", "version"}
checked<actors::put_file> parse_put_file(std::string path, std::string_view body, const actors::edit_limits& limits);

/// {"version", "base_version", "edits", "cursor"}
checked<actors::patch_file> parse_patch(std::string path, std::string_view body, const actors::edit_limits& limits);

/// {"path", "position", "version", "mode"} and a completion's fields without the prompt. Defaults to a greedy answer if
/// there is no temperature, and to at most 64 tokens if there is no max_tokens.
struct complete_request {
  actors::completion_place where;
  generation_request how;
};
checked<complete_request> parse_complete(std::string_view body, const actors::edit_limits& limits);

/// {"path", "version", "instruction"} and a chat's fields without the messages. Defaults to a greedy answer if there is
/// no temperature.
struct edit_request {
  std::string path;
  std::optional<std::int64_t> version;
  std::string instruction;
  generation_request how;
};
checked<edit_request> parse_edit(std::string_view body, const actors::edit_limits& limits);

}  // namespace redline::api
