#pragma once

#include <vector>

#include "runtime/draft/draft_source.hpp"
#include "runtime/draft/edit_cursor.hpp"

namespace redline::draft {

/// Drafts from a text that is expected as the answer, at the position that the answer has reached in it.
class prediction_source final : public draft_source {
 public:
  /// from: the kind of expectation, a client's prediction or the prompt's format.
  explicit prediction_source(std::vector<token> prediction, source from = source::prediction)
      : from_(from), cursor_(std::move(prediction)) {}

  void append(std::span<const token> committed, bool is_prompt) override;
  /// Tokens that left the log were still written, so the cursor does not move.
  void drop(std::uint32_t, std::uint32_t) override {}
  bool catch_up(std::uint32_t tokens_max) override;
  [[nodiscard]] graded_draft look(std::span<const token> pending, std::uint32_t tokens_max) const override;

 private:
  source from_;
  edit_cursor cursor_;
  std::vector<token> waiting_;  // tokens of the answer, until the prediction is indexed
  bool is_ready_ = false;
};

}  // namespace redline::draft
