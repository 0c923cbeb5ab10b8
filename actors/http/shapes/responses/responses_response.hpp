#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "actors/http/fields/json.hpp"
#include "actors/http/request/answer_shape.hpp"
#include "actors/http/request/answer_writer.hpp"

namespace redline::responses {

/// Answers of POST /v1/responses: one object of output items, whole or as numbered events.
class response_shape final : public api::answer_shape {
 public:
  /// Keeps the parts of the request that each response repeats, as text that is made once, when the request is read.
  /// request: its members must have OpenAI's types.
  explicit response_shape(const api::json& request);
  [[nodiscard]] std::size_t repeated_bytes() const { return repeated_->size(); }
  [[nodiscard]] std::unique_ptr<api::answer_writer> make_writer(const api::response_head& head) const override;

 private:
  std::shared_ptr<const std::string> repeated_;
};

}  // namespace redline::responses
