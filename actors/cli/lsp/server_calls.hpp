#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "actors/cli/lsp/edited_document.hpp"
#include "actors/cli/lsp/line_edits.hpp"
#include "actors/cli/server_address.hpp"

namespace redline::actors::cli::lsp {

// The calls to a server. Each document has its own session, so that losing one affects no other.

struct open_call {
  std::string path;
  std::string text;
  std::int64_t revision = 0;
};
struct patch_call {
  std::string session;
  std::string path;
  change_set changes;
};
struct close_call {
  std::string session;
};
struct complete_call {
  std::string session;
  std::string path;
  std::int64_t revision = 0;
  std::size_t byte = 0;
  std::uint32_t tokens_max = 0;
};
/// With a session, edits the session's whole file. Without a session, edits only `before`, some lines of a file.
struct edit_call {
  std::string session;
  std::string path;
  std::int64_t revision = 0;
  std::string before;
  std::uint32_t first_line = 0;  // line of the file where `before` begins
  std::string instruction;
  text::position_encoding units = text::position_encoding::utf16;
};
/// Asks for the next edit around a byte of a file.
struct next_edit_call {
  std::string path;
  std::string text;
  std::size_t byte = 0;
  std::string changes;  // the last ones: see change_story
  text::position_encoding units = text::position_encoding::utf16;
};
/// Checks that the server can be reached and serves.
struct probe_call {};
using server_call = std::variant<open_call, patch_call, close_call, complete_call, edit_call, next_edit_call, probe_call>;

struct server_reply {
  enum class kind : std::uint8_t {
    done,
    lost,          // the session does not exist
    stale,         // the session has another text
    full,          // no capacity now, perhaps later
    gone,          // no answer, or the server serves no requests now
    unauthorized,  // a key is missing or wrong
    foreign,       // not a Redline server, or another version
    refused,       // the server refuses this request for good
    cancelled,     // given up by the caller
  };
  kind what = kind::done;
  std::string why;                     // for users; empty for `done`
  std::chrono::seconds retry_after{};  // for `full`; 0 if the server did not say
  std::string session;                 // for open_call
  std::string text;                    // for complete_call
  std::vector<line_edit> edits;        // for edit_call and next_edit_call
};

/// The meaning of an HTTP answer that is not a success. retry_after: the header's value, or null.
server_reply judge(unsigned status, const std::string& body, const std::string* retry_after = nullptr);

/// Makes calls to one server and blocks until they end.
class server_calls {
 public:
  explicit server_calls(server_address at) : at_(std::move(at)) {}

  /// on_bytes: gets the length of an edit's answer so far.
  server_reply make(const server_call& what, const std::atomic<bool>& given_up,
                    const std::function<void(std::size_t)>& on_bytes) const;

 private:
  server_address at_;
};

}  // namespace redline::actors::cli::lsp
