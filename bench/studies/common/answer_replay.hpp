#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "bench/studies/common/names.hpp"
#include "runtime/base/philox.hpp"
#include "runtime/sampling/token_chooser.hpp"

namespace redline::studies {

/// Replays recorded answers in the target model of this process and notes each verification. Every forward pass and
/// every row's choice is computed as always, so replayed times are real; only the text is not the model's.
class answer_replay final : public sampling::token_chooser {
 public:
  /// One verification: how many draft tokens were checked and how many were right.
  struct step {
    std::uint32_t drafted = 0;
    std::uint32_t accepted = 0;
    bool operator==(const step&) const = default;
  };

  /// `answer` is the whole output of the next sequence, its end token included, and is not empty.
  void replay(sequence_id sequence, std::vector<token> answer) {
    const std::scoped_lock lock(mutex_);
    answers_[sequence.value] = std::move(answer);
  }
  /// Ends the replay of a sequence and returns its notes.
  std::vector<step> finish(sequence_id sequence) {
    const std::scoped_lock lock(mutex_);
    answers_.erase(sequence.value);
    const auto found = steps_.extract(sequence.value);
    return found.empty() ? std::vector<step>{} : std::move(found.mapped());
  }
  /// The tokens of an answer; 0 when it is not replayed.
  [[nodiscard]] std::size_t length_of(std::uint64_t answer) const {
    const std::scoped_lock lock(mutex_);
    const auto found = answers_.find(answer);
    return found == answers_.end() ? 0 : found->second.size();
  }

  /// Returns the recorded token, or the last one after the answer's end.
  [[nodiscard]] std::optional<token> choose(const row& at) const override {
    const std::scoped_lock lock(mutex_);
    const auto found = answers_.find(at.answer);
    if (found == answers_.end()) return std::nullopt;
    const auto& known = found->second;
    return known[std::min<std::uint64_t>(at.index, known.size() - 1)];
  }
  /// Simulates an MTP layer of known quality, like draft_replay.
  void simulate_mtp(double right) { mtp_right_ = right; }
  [[nodiscard]] std::optional<token> draft(const row& at) const override;
  [[nodiscard]] float confidence(std::uint64_t, float own) const override {
    return mtp_right_ ? static_cast<float>(*mtp_right_) : own;
  }
  void note_verified(std::uint64_t answer, std::uint32_t drafted, std::uint32_t accepted) override {
    const std::scoped_lock lock(mutex_);
    steps_[answer].push_back({drafted, accepted});
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::uint64_t, std::vector<token>> answers_;
  std::map<std::uint64_t, std::vector<step>> steps_;
  std::optional<double> mtp_right_;
};

/// Decides whether the simulated draft model is right at a token of a replayed answer: with the chance `right`, and the
/// same at every call with this position and this length of the answer.
[[nodiscard]] inline bool model_is_right(std::uint64_t index, std::size_t answer_count, double right) {
  const std::array<std::uint32_t, 4> counter{static_cast<std::uint32_t>(index), 0, 0, 0};
  return philox4x32(counter, {static_cast<std::uint32_t>(answer_count), 0})[0] / 4294967296.0 < right;
}

inline std::optional<token> answer_replay::draft(const row& at) const {
  if (!mtp_right_) return std::nullopt;
  const auto known = choose(at);
  if (!known || model_is_right(at.index, length_of(at.answer), *mtp_right_)) return known;
  return *known == 0 ? 2 : 0;
}

/// A draft model of known quality for replayed answers. It agrees with every lookup token that is right, and a given
/// share of its own tokens, at positions fixed by chance, is right.
class draft_replay final : public sampling::token_chooser {
 public:
  draft_replay(std::shared_ptr<const answer_replay> answers, double right)
      : answers_(std::move(answers)), right_(right) {}

  [[nodiscard]] std::optional<token> choose(const row& at) const override {
    const auto known = answers_->choose(at);
    if (!known || at.drafted == known) return known;
    if (model_is_right(at.index, answers_->length_of(at.answer), right_)) return known;
    return *known == 0 ? 2 : 0;
  }
  [[nodiscard]] float confidence(std::uint64_t, float) const override { return static_cast<float>(right_); }

 private:
  std::shared_ptr<const answer_replay> answers_;
  double right_;
};

}  // namespace redline::studies
