#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace redline::tools {

/// A function that a client offers to the model. The client runs it; we only carry the call.
struct tool {
  std::string name;  // letters, digits and "_-.:/", so that no call's markup is in it
  std::string description;
  nlohmann::ordered_json parameters = nullptr;  // a JSON schema of type object; null: none was given
  bool strict = false;                          // refuse the request rather than hold the arguments to less than this
};

/// Whether the answer calls tools.
enum class choice : std::uint8_t {
  none,       // it does not
  automatic,  // the model decides
  required,   // it does, from its first byte
};

/// What a request says about tools.
struct tool_set {
  std::vector<tool> all;             // shown to the model
  std::vector<std::string> allowed;  // those that it may call; empty: all
  choice call = choice::automatic;
  bool many = true;        // more than one call in an answer
  bool is_legacy = false;  // asked for by `functions`, and answered by `function_call`
};

/// A call as an answer makes it.
struct tool_call {
  std::string id;
  std::string name;
  std::string arguments;  // JSON, as the model wrote it; cut where the answer was
  bool operator==(const tool_call&) const = default;
};

}  // namespace redline::tools
