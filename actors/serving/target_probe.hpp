#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "runtime/base/ids.hpp"
#include "runtime/base/philox.hpp"

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
  /// From now on the draft model of a replayed sequence is one that agrees with everything looked up that is right, and
  /// is right in this share of its own tokens, at places that chance fixes.
  void replay_drafts(double right) {
    const std::scoped_lock lock(mutex_);
    draft_right_ = right;
  }
  /// What it chooses behind the output's first `output_index` tokens and in each row of `guess`; none when drafts are
  /// the model's own.
  [[nodiscard]] std::vector<token> draft_choices(sequence_id sequence, std::uint32_t output_index,
                                                 std::span<const token> guess) const {
    auto choices = known(sequence, output_index, guess.size() + 1);
    const std::scoped_lock lock(mutex_);
    if (!draft_right_) return {};
    for (std::size_t i = 0; i < choices.size(); ++i) {
      if (i < guess.size() && guess[i] == choices[i]) continue;
      const auto place = static_cast<std::uint32_t>(output_index + i);
      const double chance = philox4x32({place, 0, 0, 0}, {answer_seed(sequence), 0})[0] / 4294967296.0;
      if (chance >= *draft_right_) choices[i] = choices[i] == 0 ? 2 : 0;
    }
    return choices;
  }
  [[nodiscard]] std::optional<double> draft_right() const {
    const std::scoped_lock lock(mutex_);
    return draft_right_;
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
  /// The same for every method and run of an answer.
  [[nodiscard]] std::uint32_t answer_seed(sequence_id sequence) const {
    const auto found = answers_.find(sequence);
    return found == answers_.end() ? 0 : static_cast<std::uint32_t>(found->second.size());
  }

  mutable std::mutex mutex_;
  std::map<sequence_id, std::vector<token>> answers_;
  std::map<sequence_id, std::vector<step>> steps_;
  std::optional<double> draft_right_;
};

}  // namespace redline::actors
