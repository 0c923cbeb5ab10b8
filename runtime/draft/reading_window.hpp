#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "runtime/base/ids.hpp"

namespace redline::draft {

/// What a small model reads of a log that is longer than its context. An answer that repeats a long prompt is copied
/// from a place that the last tokens alone would not show: so the model reads the log's beginning, what stands around
/// that place, and the end. The parts stay until the log has grown too long after them or the copying has left them,
/// so that most drafts compute nothing anew; then about half of the context is read again.
class reading_window {
 public:
  /// For the log and up to `room` tokens after it, in a context of `most`. copied_from: where the log is being copied
  /// from. The log only grows between calls but for `cut`.
  void follow(std::size_t log_count, std::size_t copied_from, std::size_t room, std::size_t most);
  /// The log is other from this token on.
  void cut(std::size_t from);
  [[nodiscard]] std::vector<token> read(std::span<const token> log) const;
  /// How many of the first tokens of `read` are those that `seen` holds.
  [[nodiscard]] std::size_t matching(std::span<const token> log, std::span<const token> seen) const;
  [[nodiscard]] std::size_t count(std::size_t log_count) const {
    return head_end_ + (excerpt_end_ - excerpt_begin_) + (log_count - tail_begin_);
  }

 private:
  void choose(std::size_t log_count, std::size_t copied_from, std::size_t most);

  // [0, head_end), [excerpt_begin, excerpt_end) and [tail_begin, end of the log), in order; the whole log at first.
  std::size_t head_end_ = 0;
  std::size_t excerpt_begin_ = 0;
  std::size_t excerpt_end_ = 0;
  std::size_t tail_begin_ = 0;
  std::size_t chosen_at_ = 0;  // the log's length then
};

}  // namespace redline::draft
