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

// What a server is asked. Each document has a session of its own, so that losing one loses no other.

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
/// With a session: the whole file that it holds. Without: `before` alone, some lines of a file.
struct edit_call {
  std::string session;
  std::string path;
  std::int64_t revision = 0;
  std::string before;
  std::uint32_t first_line = 0;  // of the file, where `before` begins
  std::string instruction;
  text::position_encoding units = text::position_encoding::utf16;
};
/// Whether it can be reached and serves.
struct probe_call {};
using server_call = std::variant<open_call, patch_call, close_call, complete_call, edit_call, probe_call>;

struct server_reply {
  enum class kind : std::uint8_t {
    done,
    lost,          // the session is not there
    stale,         // the session has another text
    full,          // later, perhaps
    gone,          // nobody answers, or it serves nobody now
    unauthorized,  // a key is missing or wrong
    foreign,       // it is no Redline server, or of another version
    refused,       // this request will not be served
    cancelled,     // given up
  };
  kind what = kind::done;
  std::string why;                     // for people; empty when done
  std::chrono::seconds retry_after{};  // when full; 0: it did not say
  std::string session;                 // of open_call
  std::string text;                    // of complete_call
  std::vector<line_edit> edits;        // of edit_call
};

/// What an HTTP answer that is no success means. retry_after: the header's value, or null.
server_reply judge(unsigned status, const std::string& body, const std::string* retry_after = nullptr);

/// Calls of one server; blocks.
class server_calls {
 public:
  explicit server_calls(server_address at) : at_(std::move(at)) {}

  /// on_bytes: how much of an edit's answer is there.
  server_reply make(const server_call& what, const std::atomic<bool>& given_up,
                    const std::function<void(std::size_t)>& on_bytes) const;

 private:
  server_address at_;
};

}  // namespace redline::actors::cli::lsp
