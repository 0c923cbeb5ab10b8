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

/// The bodies of calls of edit sessions, as the messages that carry them on; `exchange` and `spec` are left empty.
namespace redline::api {

/// What becomes of KV after an edit, and whether inexact KV is computed again in idle time.
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

/// {"path", "position", "version", "mode"} and the fields of a completion but for the prompt. Without a temperature the
/// answer is greedy, without max_tokens it has at most 64 tokens.
struct complete_request {
  actors::completion_place where;
  generation_request how;
};
checked<complete_request> parse_complete(std::string_view body, const actors::edit_limits& limits);

/// {"path", "version", "instruction"} and the fields of a chat but for the messages. Without a temperature the answer
/// is greedy.
struct edit_request {
  std::string path;
  std::optional<std::int64_t> version;
  std::string instruction;
  generation_request how;
};
checked<edit_request> parse_edit(std::string_view body, const actors::edit_limits& limits);

}  // namespace redline::api
