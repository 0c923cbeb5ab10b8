#pragma once

#include <memory>
#include <optional>

#include "actors/http/request/generation_request.hpp"
#include "actors/pool/served_model.hpp"

namespace redline::actors {

/// Why this model cannot be shown the request's tools, if it is to be.
[[nodiscard]] std::optional<api::api_error> check_tools(const served_model& model,
                                                        const std::optional<tools::tool_set>& offered);

/// What an answer with the request's tools follows, for `answer_terms::tools`; nothing for a request without.
[[nodiscard]] api::checked<std::optional<std::string>> hold_to_tools(const served_model& model,
                                                                     const api::generation_request& asked);

/// The rules of an answer that may call tools, with the texts of the conversation that its arguments may copy: what
/// messages say, and the long strings of earlier calls.
[[nodiscard]] std::shared_ptr<const output_rules> with_known_texts(std::shared_ptr<const output_rules> rules,
                                                                   const api::json& messages);

}  // namespace redline::actors
