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

/// Where a command has its answers computed: by a running server, or by one of its own, which ends with this object.
/// There is no other way to a model. May be used by several threads at once.
class model_door {
 public:
  static result<model_door> of_server(const std::string& url, const std::string& api_key);
  /// Starts one and waits until its models are loaded. method: what it drafts by, and its limits; answers_max: at once.
  static result<model_door> of_own_server(const model_flags& models, const method_flags& method,
                                          std::size_t answers_max);

  /// The server has this command's options of drafts: a request need not repeat them.
  [[nodiscard]] bool knows_drafting() const { return child_ != nullptr; }
  /// The answer to a POST, or what the server says against it. Of its own server in the words of one program.
  [[nodiscard]] result<nlohmann::ordered_json> ask(const std::string& target, const nlohmann::ordered_json& body) const;
  /// The same of a stream, whose objects are handed on as they come.
  [[nodiscard]] result<void> ask(const std::string& target, const nlohmann::ordered_json& body,
                                 const std::function<void(const nlohmann::ordered_json& chunk)>& on_chunk) const;

 private:
  [[nodiscard]] transport::http_client_options patience() const;
  [[nodiscard]] failure refusal(const transport::http_response& answer) const;
  /// Why a call to the server failed: perhaps it has died.
  [[nodiscard]] failure explain(const failure& why) const;

  server_address server_;
  std::unique_ptr<child_server> child_;  // null: a running server
};

}  // namespace redline::actors::cli
