#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "actors/cli/child_server.hpp"
#include "actors/cli/flags/generation_flags.hpp"
#include "actors/cli/flags/model_flags.hpp"
#include "actors/cli/server_address.hpp"

namespace redline::actors::cli {

/// Large models may come from slow disks.
inline constexpr std::chrono::seconds model_loading_max{1800};

/// The server that computes a command's answers: a running one, or a private one that ends with this object. Commands
/// have no other access to a model. Several threads may use it at once.
class model_door {
 public:
  static result<model_door> of_server(const std::string& url, const std::string& api_key);
  /// Starts a private server and waits until its models are loaded. method: how it drafts. answers_max: at once.
  static result<model_door> of_own_server(const model_flags& models, const method_flags& method,
                                          std::size_t answers_max);

  /// True if the server already has this command's draft options, so that requests need not repeat them.
  [[nodiscard]] bool knows_drafting() const { return child_ != nullptr; }
  /// The answer to a POST, or the server's error. A private server's errors read like this program's own.
  [[nodiscard]] result<nlohmann::ordered_json> ask(const std::string& target, const nlohmann::ordered_json& body) const;
  /// The same for a stream; on_chunk gets each object as it arrives.
  [[nodiscard]] result<void> ask(const std::string& target, const nlohmann::ordered_json& body,
                                 const std::function<void(const nlohmann::ordered_json& chunk)>& on_chunk) const;

 private:
  [[nodiscard]] transport::http_client_options patience() const;
  [[nodiscard]] failure refusal(const transport::http_response& answer) const;
  /// The reason why a call failed, including that the server may have died.
  [[nodiscard]] failure explain(const failure& why) const;

  server_address server_;
  std::unique_ptr<child_server> child_;  // null for a running server
};

}  // namespace redline::actors::cli
