#pragma once

#include <memory>
#include <string>

#include "actors/http/request/answer_shape.hpp"
#include "actors/http/request/answer_writer.hpp"

namespace redline::anthropic {

/// Answers of POST /v1/messages: one message of content blocks, whole or as events.
struct message_shape final : api::answer_shape {
  bool shows_thoughts = false;  // as separate blocks, if the client asked for them
  [[nodiscard]] std::unique_ptr<api::answer_writer> make_writer(const api::response_head& head) const override;
};

/// {"type": "error", "error": {"type", "message"}}
std::string error_body(const api::api_error& why);

std::string count_body(std::size_t prompt_tokens);

}  // namespace redline::anthropic
