#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "actors/http/request/answer_shape.hpp"
#include "actors/http/request/answer_writer.hpp"
#include "actors/http/request/model_card.hpp"

namespace redline::ollama {

/// Answers of POST /api/chat or /api/generate: one object, or one per line.
class answer_shape final : public api::answer_shape {
 public:
  /// only_loads: there was no prompt, so the answer has no text.
  answer_shape(bool is_chat, bool only_loads) : is_chat_(is_chat), only_loads_(only_loads) {}
  [[nodiscard]] std::unique_ptr<api::answer_writer> make_writer(const api::response_head& head) const override;

 private:
  bool is_chat_, only_loads_;
};

/// The supported version of Ollama's API; clients require a minimum.
inline constexpr std::string_view version_spoken = "0.12.0";

/// {"error": "text"}
std::string error_body(const api::api_error& why);
/// GET /api/tags, /api/ps. All models are loaded.
std::string model_list_body(std::span<const api::model_card> cards);
std::string running_body(std::span<const api::model_card> cards);
/// POST /api/show.
std::string model_body(const api::model_card& card);

}  // namespace redline::ollama
