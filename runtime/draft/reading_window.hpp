#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "runtime/base/ids.hpp"

namespace redline::draft {

/// The parts that a small model reads of a log longer than its context. An answer that repeats a long prompt is copied
/// from a position that the last tokens alone do not show. So the model reads the log's beginning, the surroundings of
/// that position, and the end. The parts stay until the log has grown too long or the copying has left them, so that
/// most drafts recompute nothing; then about half of the context is read again.
class reading_window {
 public:
  /// Chooses the parts for the log and up to `room` tokens after it, in a context of `most`. copied_from: the position
  /// that the log is being copied from. Between calls the log only grows, except by `cut`.
  void follow(std::size_t log_count, std::size_t copied_from, std::size_t room, std::size_t most);
  /// The log has changed from this token on.
  void cut(std::size_t from);
  [[nodiscard]] std::vector<token> read(std::span<const token> log) const;
  /// How many of the first tokens of `read` equal those of `seen`.
  [[nodiscard]] std::size_t matching(std::span<const token> log, std::span<const token> seen) const;
  [[nodiscard]] std::size_t count(std::size_t log_count) const {
    return head_end_ + (excerpt_end_ - excerpt_begin_) + (log_count - tail_begin_);
  }

 private:
  void choose(std::size_t log_count, std::size_t copied_from, std::size_t most);

  // The window is [0, head_end), [excerpt_begin, excerpt_end) and [tail_begin, end of the log), at first the whole log.
  std::size_t head_end_ = 0;
  std::size_t excerpt_begin_ = 0;
  std::size_t excerpt_end_ = 0;
  std::size_t tail_begin_ = 0;
  std::size_t chosen_at_ = 0;  // the log's length at the last choice
};

}  // namespace redline::draft
