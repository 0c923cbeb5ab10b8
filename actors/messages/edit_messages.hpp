#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "actors/messages/answer_terms.hpp"
#include "runtime/actor/address.hpp"
#include "runtime/actor/protocol.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/base/size_limits.hpp"

namespace redline::actors {

/// Limits of edit sessions. A request that exceeds one is answered with its own kind of refusal.
struct edit_limits {
  std::size_t sessions_max = 256;        // per gateway
  std::size_t tenant_sessions_max = 64;  // per tenant
  std::size_t files_max = 64;            // per session
  std::size_t file_bytes_max = sizes::edit_file_bytes_max;
  std::size_t session_bytes_max = sizes::edit_session_bytes_max;  // all files together
  // Bytes of texts and tokens that the sessions keep: per tenant, and in total.
  std::size_t tenant_bytes_max = sizes::edit_memory_bytes_max;
  std::size_t bytes_max = sizes::edit_memory_bytes_max;
  std::size_t edits_max = 256;  // per change
  std::size_t path_bytes_max = 1024;
  std::size_t instruction_bytes_max = 64 << 10;
  std::size_t calls_max = 16;           // per session: waiting calls, and waiting completions
  std::int64_t idle_seconds_max = 900;  // time without a call
};

// ---- parts of messages ---------------------------------------------------------------------------------------------

/// A position in a file: a line and a character in the session's units, both from 0, or a byte.
struct file_place {
  bool is_byte = false;
  std::uint32_t line = 0;
  std::uint32_t character = 0;
  std::uint32_t byte = 0;
  bool operator==(const file_place&) const = default;
  static constexpr auto fields(auto& self) { return std::tie(self.is_byte, self.line, self.character, self.byte); }
};

struct file_range {
  file_place begin;
  file_place end;  // in the same units as `begin`
  bool operator==(const file_range&) const = default;
  static constexpr auto fields(auto& self) { return std::tie(self.begin, self.end); }
};

/// Replaces a range with `text`; an empty range inserts.
struct file_edit {
  std::optional<file_range> where;  // the whole text if absent
  std::string text;
  bool operator==(const file_edit&) const = default;
  static constexpr auto fields(auto& self) { return std::tie(self.where, self.text); }
};

enum class completion_mode : std::uint8_t {
  line,  // the rest of the line
  text,  // until the model ends
  fim,   // the middle, between what comes before and after the position
  last_,
};

/// Where a completion is wanted.
struct completion_place {
  std::string path;
  std::optional<file_place> place;      // the end of the file if absent
  std::optional<std::int64_t> version;  // the file version that the client expects
  std::optional<completion_mode> mode;  // if absent, fim where the model has tokens for it, else line
  static constexpr auto fields(auto& self) { return std::tie(self.path, self.place, self.version, self.mode); }
};

/// A file as its session keeps it.
struct file_state {
  std::string path;
  std::int64_t version = 0;
  std::uint64_t bytes = 0;
  std::uint64_t lines = 0;
  std::uint64_t tokens = 0;
  static constexpr auto fields(auto& self) {
    return std::tie(self.path, self.version, self.bytes, self.lines, self.tokens);
  }
};

/// How many tokens of a prompt have exact KV, and the most that have inexact KV.
struct kv_state {
  std::uint32_t exact = 0;
  std::uint32_t stale = 0;
  bool operator==(const kv_state&) const = default;
  static constexpr auto fields(auto& self) { return std::tie(self.exact, self.stale); }
};

// ---- to an edit session (the client's access has been checked) ------------------------------------------------------

/// Answered with `session_shown`.
struct show_session {
  static constexpr actor::message_id id{0x0b10};
  static constexpr std::string_view name = "show_session";

  std::uint64_t exchange = 0;
  static constexpr auto fields(auto& self) { return std::tie(self.exchange); }
};

/// Answered with `file_shown`, which includes the text.
struct show_file {
  static constexpr actor::message_id id{0x0b11};
  static constexpr std::string_view name = "show_file";

  std::uint64_t exchange = 0;
  std::string path;
  static constexpr auto fields(auto& self) { return std::tie(self.exchange, self.path); }
};

/// A new file, or a new text for an existing one. Answered with `file_shown`.
struct put_file {
  static constexpr actor::message_id id{0x0b12};
  static constexpr std::string_view name = "put_file";

  std::uint64_t exchange = 0;
  std::string path;
  std::string text;
  std::int64_t version = 1;
  static constexpr auto fields(auto& self) { return std::tie(self.exchange, self.path, self.text, self.version); }
};

/// Edits of one file, each based on the text that those before it left. Answered with `file_shown` and its `change`.
struct patch_file {
  static constexpr actor::message_id id{0x0b13};
  static constexpr std::string_view name = "patch_file";

  std::uint64_t exchange = 0;
  std::string path;
  std::int64_t base = 0;  // the version that the edits apply to
  std::int64_t next = 0;  // the version that they produce
  std::vector<file_edit> edits;
  std::optional<file_place> cursor;  // where the next completion is expected; after the last edit if absent
  static constexpr auto fields(auto& self) {
    return std::tie(self.exchange, self.path, self.base, self.next, self.edits, self.cursor);
  }
};

/// Answered with `call_done`.
struct drop_file {
  static constexpr actor::message_id id{0x0b14};
  static constexpr std::string_view name = "drop_file";

  std::uint64_t exchange = 0;
  std::string path;
  static constexpr auto fields(auto& self) { return std::tie(self.exchange, self.path); }
};

/// Asks for a completion at a position. The edit session spawns the answer's session on its own sequence, when that is
/// free, and answers with `answer_started`.
struct complete_text {
  static constexpr actor::message_id id{0x0b15};
  static constexpr std::string_view name = "complete_text";

  std::uint64_t exchange = 0;
  completion_place where;
  answer_terms spec;
  static constexpr auto fields(auto& self) { return std::tie(self.exchange, self.where, self.spec); }
};

/// Asks for a file edited by an instruction: a conversation with the model, on its own sequence. Answered with
/// `answer_started`.
struct edit_file {
  static constexpr actor::message_id id{0x0b16};
  static constexpr std::string_view name = "edit_file";

  std::uint64_t exchange = 0;
  std::string path;
  std::optional<std::int64_t> version;
  std::string instruction;
  answer_terms spec;
  bool predicts_file = false;  // the file's text is the prediction, since most of the new file is the old one
  static constexpr auto fields(auto& self) {
    return std::tie(self.exchange, self.path, self.version, self.instruction, self.spec, self.predicts_file);
  }
};

/// Answered with `call_done`; then the session ends.
struct close_session {
  static constexpr actor::message_id id{0x0b17};
  static constexpr std::string_view name = "close_session";

  std::uint64_t exchange = 0;
  static constexpr auto fields(auto& self) { return std::tie(self.exchange); }
};

/// The client of a completion has left, or the session that answered it has died.
struct withdraw_call {
  static constexpr actor::message_id id{0x0b02};
  static constexpr std::string_view name = "withdraw_call";

  std::uint64_t exchange = 0;
  static constexpr auto fields(auto& self) { return std::tie(self.exchange); }
};

/// The session that borrowed a sequence is over. A round that it asked for may still be on its way; later rounds
/// replace it.
struct sequence_returned {
  static constexpr actor::message_id id{0x0b06};
  static constexpr std::string_view name = "sequence_returned";

  sequence_id sequence;
  static constexpr auto fields(auto& self) { return std::tie(self.sequence); }
};

/// An edit session's own heartbeat.
struct edit_session_tick {
  static constexpr actor::message_id id{0x0b07};
  static constexpr std::string_view name = "edit_session_tick";
  static constexpr auto fields(auto&) { return std::tie(); }
};

// ---- from an edit session to the gateway ---------------------------------------------------------------------------

struct session_shown {
  static constexpr actor::message_id id{0x0b20};
  static constexpr std::string_view name = "session_shown";

  std::uint64_t exchange = 0;
  std::uint64_t healed_count = 0;  // how often inexact KV was replaced with exact KV
  kv_state kv;
  std::vector<file_state> files;
  static constexpr auto fields(auto& self) { return std::tie(self.exchange, self.healed_count, self.kv, self.files); }
};

/// What an edit did to a file's tokens, and the state of the KV for the next completion's prompt.
struct file_change {
  std::uint64_t tokens_removed = 0;
  std::uint64_t tokens_inserted = 0;
  kv_state kv;
  static constexpr auto fields(auto& self) { return std::tie(self.tokens_removed, self.tokens_inserted, self.kv); }
};

struct file_shown {
  static constexpr actor::message_id id{0x0b21};
  static constexpr std::string_view name = "file_shown";

  std::uint64_t exchange = 0;
  file_state file;
  bool is_new = false;
  std::optional<std::string> text;
  std::optional<file_change> change;
  static constexpr auto fields(auto& self) {
    return std::tie(self.exchange, self.file, self.is_new, self.text, self.change);
  }
};

/// The call has been carried out, and has no other result.
struct call_done {
  static constexpr actor::message_id id{0x0b22};
  static constexpr std::string_view name = "call_done";

  std::uint64_t exchange = 0;
  static constexpr auto fields(auto& self) { return std::tie(self.exchange); }
};

struct call_refused {
  static constexpr actor::message_id id{0x0b23};
  static constexpr std::string_view name = "call_refused";

  std::uint64_t exchange = 0;
  refusal why;
  static constexpr auto fields(auto& self) { return std::tie(self.exchange, self.why); }
};

/// The answer's session exists; it sends the gateway the text.
struct answer_started {
  static constexpr actor::message_id id{0x0b24};
  static constexpr std::string_view name = "answer_started";

  std::uint64_t exchange = 0;
  actor::address where;
  static constexpr auto fields(auto& self) { return std::tie(self.exchange, self.where); }
};

/// Sent every few seconds. A gateway that does not know the edit session, because it was restarted, closes it.
struct edit_session_alive {
  static constexpr actor::message_id id{0x0b08};
  static constexpr std::string_view name = "edit_session_alive";

  session_id session;
  static constexpr auto fields(auto& self) { return std::tie(self.session); }
};

/// An edit session ends, because its client closed it or left it idle for too long.
struct edit_session_over {
  static constexpr actor::message_id id{0x0b05};
  static constexpr std::string_view name = "edit_session_over";

  session_id session;
  static constexpr auto fields(auto& self) { return std::tie(self.session); }
};

}  // namespace redline::actors
