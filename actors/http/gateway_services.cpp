#include "actors/http/gateway_services.hpp"

#include <algorithm>

namespace redline::actors {
namespace {

constexpr std::size_t names_shown_max = 8;

}  // namespace

api::checked<std::shared_ptr<const served_model>> gateway_services::find_model(const std::string& name) const {
  const auto catalog = models->snapshot();
  if (catalog->empty()) {
    auto error = api::error_of({errc::not_ready, ""});
    error.message = "No model is loaded yet.";
    return error;
  }
  auto found = catalog->find(name);
  if (!found && accept_any_model) found = catalog->find("");
  if (found) return found;
  std::string text = "no model '" + name + "'; available: ";
  for (std::size_t i = 0; i < std::min(catalog->models().size(), names_shown_max); ++i) {
    text += (i == 0 ? "" : ", ") + catalog->models()[i].model->name;
  }
  if (catalog->models().size() > names_shown_max) text += ", ... (GET /v1/models lists all)";
  text += ". The operator of the server can add a name with --alias, or accept any name with --accept-any-model.";
  return api::error_of({errc::model_not_found, std::move(text)});
}

std::optional<api::api_error> gateway_services::hold(byte_budget::claim& held, std::uint64_t bytes) const {
  const auto verdict = held.resize(bytes, request_limits);
  if (verdict == byte_budget::verdict::granted) return std::nullopt;
  const bool is_own = verdict == byte_budget::verdict::tenant_is_full;
  const auto most = is_own ? request_limits.tenant_bytes_max : request_limits.bytes_max;
  const std::string whose = is_own ? "Your requests in progress" : "The requests of this server in progress";
  std::string text = whose + " may use at most " + std::to_string(most) +
                     " bytes for bodies, prompts and answers (--requests-mib), and this one, with " +
                     std::to_string(bytes) + " bytes, would exceed that: ";
  if (bytes > most) {
    text += "send less, or ask for fewer answers to a long prompt.";
    return api::api_error{413, "invalid_request_error", std::move(text), "", "request_too_large", {}};
  }
  text += "try again when other requests are finished.";
  constexpr std::uint32_t retry_seconds = 1;
  if (is_own) return api::api_error{429, "rate_limit_error", std::move(text), "", "queue_full", retry_seconds};
  return api::api_error{503, "unavailable_error", std::move(text), "", "overloaded", retry_seconds};
}

}  // namespace redline::actors
