#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <mutex>
#include <vector>

#include "runtime/base/ids.hpp"

namespace redline::actors {

/// What a benchmark gives the target model of its own process: notes each verification, and replays known answers,
/// where the known token is committed in place of the one the logits choose. Every forward is computed and every row's
/// choice made as always, so replayed times are real; the text is not the model's. Set through engine_options alone: no
/// message and no request can reach it. Safe from any thread.
class target_probe {
 public:
  /// One verification: draft tokens looked at, and how many were right.
  struct step {
    std::uint32_t drafted = 0;
    std::uint32_t accepted = 0;
    bool operator==(const step&) const = default;
  };

  /// `answer`: the whole output of the sequence to come, its end token included; not empty.
  void replay(sequence_id sequence, std::vector<token> answer) {
    const std::scoped_lock lock(mutex_);
    answers_[sequence] = std::move(answer);
  }
  /// Ends the replay and the notes of a sequence, and hands out the notes.
  std::vector<step> finish(sequence_id sequence) {
    const std::scoped_lock lock(mutex_);
    answers_.erase(sequence);
    const auto found = steps_.extract(sequence);
    return found.empty() ? std::vector<step>{} : std::move(found.mapped());
  }

  /// The known tokens from this index of the output on, the last one repeated up to `count`; none when the sequence is
  /// not replayed.
  [[nodiscard]] std::vector<token> known(sequence_id sequence, std::uint32_t output_index, std::size_t count) const {
    const std::scoped_lock lock(mutex_);
    const auto found = answers_.find(sequence);
    if (found == answers_.end()) return {};
    const auto& answer = found->second;
    std::vector<token> rest(answer.begin() + std::min<std::ptrdiff_t>(output_index, std::ssize(answer)), answer.end());
    rest.resize(count, answer.back());
    return rest;
  }
  void note(sequence_id sequence, step s) {
    const std::scoped_lock lock(mutex_);
    steps_[sequence].push_back(s);
  }

 private:
  mutable std::mutex mutex_;
  std::map<sequence_id, std::vector<token>> answers_;
  std::map<sequence_id, std::vector<step>> steps_;
};

}  // namespace redline::actors
