#include "actors/http/gateway_services.hpp"

namespace redline::actors {

api::checked<std::shared_ptr<const served_model>> gateway_services::find_model(const std::string& name) const {
  const auto catalog = models->snapshot();
  if (catalog->empty()) {
    auto error = api::error_of({errc::not_ready, ""});
    error.message = "No model is loaded yet.";
    return error;
  }
  auto found = catalog->find(name);
  if (!found && accept_any_model) found = catalog->find("");
  if (!found) return api::error_of({errc::model_not_found, "no model '" + name + "'"});
  return found;
}

std::optional<api::api_error> gateway_services::hold(byte_budget::claim& held, std::uint64_t bytes) const {
  const auto verdict = held.resize(bytes, request_limits);
  if (verdict == byte_budget::verdict::granted) return std::nullopt;
  const bool is_own = verdict == byte_budget::verdict::tenant_is_full;
  const auto most = is_own ? request_limits.tenant_bytes_max : request_limits.bytes_max;
  const std::string whose = is_own ? "Your requests in work" : "The requests of this server in work";
  std::string text = whose + " may hold " + std::to_string(most) +
                     " bytes of bodies, prompts and answers together (--requests-mib), and this one, with " +
                     std::to_string(bytes) + ", would exceed it: ";
  if (bytes > most) {
    text += "send less, or ask for fewer answers to a long prompt.";
    return api::api_error{413, "invalid_request_error", std::move(text), "", "request_too_large", {}};
  }
  text += "try again when others are answered.";
  constexpr std::uint32_t retry_seconds = 1;
  if (is_own) return api::api_error{429, "rate_limit_error", std::move(text), "", "queue_full", retry_seconds};
  return api::api_error{503, "unavailable_error", std::move(text), "", "overloaded", retry_seconds};
}

}  // namespace redline::actors
