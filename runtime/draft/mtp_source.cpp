#include "runtime/draft/mtp_source.hpp"

#include <algorithm>

namespace redline::draft {

void mtp_source::hear(std::uint32_t at, const mtp_draft& draft) {
  at_ = at;
  draft_ = draft;
  if (draft_.tokens.size() > mtp_tokens_max) draft_.tokens.resize(mtp_tokens_max);  // a peer may send more
  draft_.grades.resize(draft_.tokens.size());
}

void mtp_source::append(std::span<const token> committed, bool) {
  for (std::size_t i = 0; i < committed.size() && !draft_.tokens.empty(); ++i) {
    const std::size_t now = length_ + i;
    if (now < at_) continue;
    if (now - at_ >= draft_.tokens.size() || draft_.tokens[now - at_] != committed[i]) draft_ = {};
  }
  length_ += static_cast<std::uint32_t>(committed.size());
}

void mtp_source::drop(std::uint32_t, std::uint32_t count) {
  length_ -= std::min(length_, count);
  draft_ = {};
}

graded_draft mtp_source::look(std::span<const token> pending, std::uint32_t tokens_max) const {
  graded_draft out;
  if (length_ < at_) return out;
  std::size_t from = length_ - at_;
  for (const token t : pending) {
    if (from >= draft_.tokens.size() || draft_.tokens[from] != t) return out;
    ++from;
  }
  for (std::size_t i = from; i < draft_.tokens.size() && i - from < tokens_max; ++i) {
    const std::uint8_t grade = std::min<std::uint8_t>(draft_.grades[i], grades_count - 1);
    out.add(source::mtp, grade, {&draft_.tokens[i], 1});
  }
  return out;
}

}  // namespace redline::draft
