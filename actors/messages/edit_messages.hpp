#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "runtime/actor/protocol.hpp"
#include "runtime/base/ids.hpp"

namespace redline::actors {

/// What a client asks of an edit session.
enum class edit_verb : std::uint8_t {
  open,        // the session is new; shown as by `show`
  show,        // the session and its files
  show_file,   // one file with its text
  put_file,    // a new file, or another text for an old one
  patch_file,  // edits of one
  drop_file,
  complete,  // what the text goes on with at a place
  edit,      // what a file becomes under an instruction
  close,
  last_,
};

/// From the gateway to an edit session; answered with `edit_reply`, or with `edit_prompt_made` where an answer of the
/// model is wanted. The client's right to the session has been checked.
struct edit_call {
  static constexpr actor::message_id id{0x0b01};
  static constexpr std::string_view name = "edit_call";

  std::uint64_t exchange = 0;
  edit_verb verb = edit_verb::show;
  std::string path;  // of the file, where the verb has one in its address
  std::string body;  // JSON
  static constexpr auto fields(auto& self) { return std::tie(self.exchange, self.verb, self.path, self.body); }
};

/// The client left before its turn came, or its answer cannot be made.
struct edit_withdraw {
  static constexpr actor::message_id id{0x0b02};
  static constexpr std::string_view name = "edit_withdraw";

  std::uint64_t exchange = 0;
  static constexpr auto fields(auto& self) { return std::tie(self.exchange); }
};

/// A whole answer for the client.
struct edit_reply {
  static constexpr actor::message_id id{0x0b03};
  static constexpr std::string_view name = "edit_reply";

  std::uint64_t exchange = 0;
  std::uint32_t status = 200;
  std::string body;  // JSON
  static constexpr auto fields(auto& self) { return std::tie(self.exchange, self.status, self.body); }
};

/// What the model is to read for one client's request. For `complete` the edit session lends its sequence and gets it
/// back with `sequence_returned`; for `edit` (no sequence) the file is in `text` and the conversation is made of it.
struct edit_prompt_made {
  static constexpr actor::message_id id{0x0b04};
  static constexpr std::string_view name = "edit_prompt_made";

  std::uint64_t exchange = 0;
  std::vector<token> prompt;
  std::vector<std::string> stops;
  sequence_id sequence;
  round_id last_round;  // of the sequence, used already
  std::string path;
  std::string text;
  std::string instruction;
  std::int64_t version = 0;
  static constexpr auto fields(auto& self) {
    return std::tie(self.exchange, self.prompt, self.stops, self.sequence, self.last_round, self.path, self.text,
                    self.instruction, self.version);
  }
};

/// An edit session ends: its client closed it, or left it alone for too long.
struct edit_session_over {
  static constexpr actor::message_id id{0x0b05};
  static constexpr std::string_view name = "edit_session_over";

  session_id session;
  static constexpr auto fields(auto& self) { return std::tie(self.session); }
};

/// The session that borrowed a sequence is over. A round that it asked for may still be under way: later ones overtake
/// it.
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

}  // namespace redline::actors
