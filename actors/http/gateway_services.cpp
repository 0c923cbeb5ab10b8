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

}  // namespace redline::actors
