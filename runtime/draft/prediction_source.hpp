#pragma once

#include <vector>

#include "runtime/draft/draft_source.hpp"
#include "runtime/draft/edit_cursor.hpp"

namespace redline::draft {

/// Drafts from a text that the client expects as the answer, at the place that the answer has reached in it.
class prediction_source final : public draft_source {
 public:
  explicit prediction_source(std::vector<token> prediction) : cursor_(std::move(prediction)) {}

  void append(std::span<const token> committed, bool is_prompt) override;
  /// What has left the log was written all the same.
  void drop(std::uint32_t, std::uint32_t) override {}
  bool catch_up(std::uint32_t tokens_max) override;
  [[nodiscard]] graded_draft look(std::span<const token> pending, std::uint32_t tokens_max) const override;

 private:
  edit_cursor cursor_;
  std::vector<token> waiting_;  // of the answer, until the prediction is indexed
  bool is_ready_ = false;
};

}  // namespace redline::draft
