#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "actors/cli/json_members.hpp"
#include "runtime/base/outcome.hpp"
#include "runtime/text/text_document.hpp"

namespace redline::actors::cli::lsp {

using json = nlohmann::ordered_json;

/// Error codes of JSON-RPC and of the Language Server Protocol.
enum class rpc_code : std::int32_t {
  parse_error = -32700,
  invalid_request = -32600,
  method_not_found = -32601,
  invalid_params = -32602,
  internal_error = -32603,
  server_not_initialized = -32002,
  request_failed = -32803,
  server_cancelled = -32802,
  content_modified = -32801,
  request_cancelled = -32800,
};

struct rpc_error {
  rpc_code code = rpc_code::internal_error;
  std::string message;
};

/// A message from the client.
struct rpc_message {
  enum class kind : std::uint8_t { request, notification, response };
  kind what = kind::notification;
  json id;             // of a request or response: a number or a string
  std::string method;  // empty for responses
  json params;         // an object, an array or null
  json result;         // a response's result; null after an error
  bool failed = false;
};

/// The answer to an invalid message. The id is null if it could not be read.
struct refused_message {
  json id;
  rpc_error why;
};
outcome<rpc_message, refused_message> parse_rpc(std::string_view text);

/// Replaces each half of a surrogate pair by U+FFFD. Editors that store text in UTF-16 may send such a half as an
/// escape, which UTF-8 cannot represent. U+FFFD has the same width in UTF-16, so later positions stay valid.
std::string mend_surrogates(std::string_view json_text);

json rpc_request(std::int64_t id, std::string_view method, json params);
json rpc_notification(std::string_view method, json params);
json rpc_result(const json& id, json result);
json rpc_refusal(const json& id, const rpc_error& why);

outcome<text::text_position, rpc_error> position_of(const json& value);
outcome<text::position_range, rpc_error> range_of(const json& value);
json to_json(text::text_position at);
json to_json(const text::position_range& range);

}  // namespace redline::actors::cli::lsp
