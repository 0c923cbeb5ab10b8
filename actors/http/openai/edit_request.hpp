#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "actors/http/openai/api_error.hpp"
#include "actors/http/openai/request.hpp"
#include "runtime/document/text_document.hpp"
#include "runtime/kv/splice_policy.hpp"

namespace redline::api {

/// What edit sessions may hold. Each is an answer of its own when it is reached.
struct edit_limits {
  std::size_t sessions_max = 256;        // of one gateway
  std::size_t tenant_sessions_max = 64;  // of one tenant
  std::size_t files_max = 64;            // of one session
  std::size_t file_bytes_max = 1 << 20;
  std::size_t session_bytes_max = 4 << 20;  // all files together
  std::size_t edits_max = 256;              // of one change
  std::size_t path_bytes_max = 1024;
  std::size_t instruction_bytes_max = 64 << 10;
  std::size_t calls_max = 16;           // of one session, waiting for their turn
  std::int64_t idle_seconds_max = 900;  // without a call
};

/// A file as a client opens it.
struct opened_file {
  std::string path;
  std::string text;
  std::int64_t version = 1;
};

/// What becomes of KV behind an edit, and whether what is not exact then is computed again in idle time.
struct cache_request {
  kv::splice_policy policy = kv::splice_policy::exact;
  bool heals = true;
};
/// "exact", "pie" or "conflict".
std::string_view name_of(kv::splice_policy policy);

struct open_session_request {
  std::string model;
  std::vector<opened_file> files;
  text::position_encoding units = text::position_encoding::utf16;
  std::int64_t idle_seconds_max = 0;
  cache_request cache;
};
answer<open_session_request> parse_open_session(std::string_view body, const edit_limits& limits);

/// PUT of a file: {"text", "version"}.
answer<opened_file> parse_put_file(std::string path, std::string_view body, const edit_limits& limits);

/// A place in a file, in the session's units or in bytes.
using file_place = std::variant<text::text_position, std::size_t>;

/// PATCH of a file: {"version", "base_version", "edits", "cursor"}.
struct patch_request {
  std::int64_t base = 0;
  std::int64_t next = 0;
  std::vector<text::text_edit> edits;
  std::optional<file_place> cursor;  // where the next completion is expected; absent: behind the last edit
};
answer<patch_request> parse_patch(std::string_view body, const edit_limits& limits);

enum class completion_mode : std::uint8_t {
  line,  // the rest of the line
  text,  // on to wherever the model ends
  fim,   // the middle between what is before and behind the place
};

/// The part of complete's body that says where; the rest is read as a completion's, see `parse_live_generation`.
struct place_request {
  std::string path;
  std::optional<file_place> place;      // absent: the end of the file
  std::optional<std::int64_t> version;  // of the file that the client has in mind
  std::optional<completion_mode> mode;  // absent: fim where the model has tokens for it, else line
  std::string instruction;              // edit only
};
/// For `edit` the instruction is required, for `complete` there is none.
answer<place_request> parse_place(std::string_view body, bool is_edit, const edit_limits& limits);

/// How the answer is to be made: the fields of a completion (complete) or of a chat (edit), but for the prompt. Absent,
/// the temperature is 0, and a completion has at most 64 tokens.
answer<generation_request> parse_live_generation(std::string_view body, bool is_edit,
                                                 const request_limits& limits = {});

}  // namespace redline::api
