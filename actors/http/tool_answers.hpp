#pragma once

#include <memory>
#include <optional>

#include "actors/http/request/generation_request.hpp"
#include "actors/pool/served_model.hpp"

namespace redline::actors {

/// The reason why the request's tools cannot be shown to this model; nullopt if they can or need not be.
[[nodiscard]] std::optional<api::api_error> check_tools(const served_model& model,
                                                        const std::optional<tools::tool_set>& offered);

/// The format that an answer with the request's tools follows, for `answer_terms::tools`; nullopt without tools.
[[nodiscard]] api::checked<std::optional<std::string>> hold_to_tools(const served_model& model,
                                                                     const api::generation_request& asked);

/// The rules of an answer that may call tools. They include the texts of the conversation that its arguments may copy:
/// long message contents, and all strings in the arguments of earlier calls.
[[nodiscard]] std::shared_ptr<const output_rules> with_known_texts(std::shared_ptr<const output_rules> rules,
                                                                   const api::json& messages);

}  // namespace redline::actors
