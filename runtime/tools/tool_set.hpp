#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace redline::tools {

/// A function that a client offers to the model. The client executes it; the server only passes the call on.
struct tool {
  std::string name;  // letters, digits and "_-.:/", so that it cannot contain a call's markup
  std::string description;
  nlohmann::ordered_json parameters = nullptr;  // a JSON schema of type object; null if none was given
  bool strict = false;  // refuse the request rather than constrain the arguments to less than this
};

/// Whether the answer calls tools.
enum class choice : std::uint8_t {
  none,       // it does not call tools
  automatic,  // the model decides
  required,   // it is a call from its first byte
};

/// A request's settings for tools.
struct tool_set {
  std::vector<tool> all;             // shown to the model
  std::vector<std::string> allowed;  // tools that it may call; empty means all
  choice call = choice::automatic;
  bool many = true;        // allows more than one call in an answer
  bool is_legacy = false;  // requested by `functions`, and answered by `function_call`
};

/// A call in an answer.
struct tool_call {
  std::string id;
  std::string name;
  std::string arguments;  // JSON as the model wrote it; truncated if the answer was
  bool operator==(const tool_call&) const = default;
};

}  // namespace redline::tools
