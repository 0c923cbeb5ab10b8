#include "runtime/draft/prediction_source.hpp"

namespace redline::draft {

void prediction_source::append(std::span<const token> committed, bool is_prompt) {
  if (is_prompt) return;
  waiting_.insert(waiting_.end(), committed.begin(), committed.end());
}

bool prediction_source::catch_up(std::uint32_t tokens_max) {
  is_ready_ = cursor_.index(tokens_max);
  if (!is_ready_) return true;
  for (const token t : waiting_) cursor_.emit(t);
  waiting_.clear();
  return false;
}

graded_draft prediction_source::look(std::span<const token> pending, std::uint32_t tokens_max) const {
  graded_draft out;
  if (!is_ready_ || !waiting_.empty()) return out;
  if (pending.empty()) {
    out.add(from_, grade_of_match(cursor_.evidence()), cursor_.ahead(tokens_max));
    return out;
  }
  edit_cursor ahead = cursor_;
  for (const token t : pending) ahead.emit(t);
  out.add(from_, grade_of_match(ahead.evidence()), ahead.ahead(tokens_max));
  return out;
}

}  // namespace redline::draft
