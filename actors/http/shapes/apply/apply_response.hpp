#pragma once

#include <memory>
#include <utility>

#include "actors/http/request/answer_shape.hpp"
#include "actors/http/request/answer_writer.hpp"
#include "actors/prompts/edit_prompt.hpp"

namespace redline::apply {

/// Answers of POST /v1/code/apply, {"mergedCode", "usage"}, or of POST /v1/apply/completions, a chat answer whose
/// content is the merged file. An error if the model's answer is not a whole file.
class merged_shape final : public api::answer_shape {
 public:
  enum class form : std::uint8_t { relace, chat };
  explicit merged_shape(actors::edit_task task, form how = form::relace) : task_(std::move(task)), how_(how) {}
  [[nodiscard]] std::unique_ptr<api::answer_writer> make_writer(const api::response_head& head) const override;

 private:
  actors::edit_task task_;
  form how_;
};

}  // namespace redline::apply
