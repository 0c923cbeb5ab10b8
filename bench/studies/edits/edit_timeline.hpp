#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "bench/studies/common/answer_replay.hpp"
#include "bench/studies/common/names.hpp"
#include "runtime/actor/activity.hpp"

namespace redline::studies {

/// The parts of the system that are busy while an edit is written. Where several are at once, the time counts for the
/// first of them.
enum class edit_part : std::uint8_t { target_model, draft_model, session, cache_manager, other, last_ };
inline constexpr std::size_t edit_parts_count = static_cast<std::size_t>(edit_part::last_);
inline constexpr std::array<const char*, edit_parts_count> edit_part_names = {"target", "draft", "session", "manager",
                                                                              "other"};

/// A time in which a part is busy, in microseconds.
struct busy_time {
  edit_part part = edit_part::other;
  bool is_pass = false;  // of the target model
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// Records what the actors of this process do. Thread-safe.
class activity_record {
 public:
  void note(const actor::activity& a);
  /// Returns what was noted since the last call, by its end.
  std::vector<busy_time> take();

 private:
  std::mutex mutex_;
  std::vector<busy_time> noted_;
};

/// How an edit's decoding was spent, in seconds: the time after the pass that gave the first token.
struct decoding_times {
  double whole = 0;
  std::array<double, edit_parts_count> busy{};  // no time is counted twice
  /// The pass of each round after the first; empty where a round took several.
  std::vector<double> passes;

  /// The time in which all parts waited, for messages and for threads to wake up.
  [[nodiscard]] double waiting() const;
};

/// rounds: those of the edit, the prompt's included.
[[nodiscard]] decoding_times decoding_times_of(std::span<const busy_time> busy, std::size_t rounds);

/// The passes of decoding with about the same number of rows.
struct width_summary {
  std::uint32_t rows_max = 0;
  std::size_t passes = 0;
  std::uint64_t rows = 0;
  std::uint64_t tokens = 0;
  double seconds = 0;
  /// The time that the same tokens take if each draft ends where it is refused, at the mean times of these passes.
  double least_seconds = 0;
};

/// Lists widths of 1, 2, up to 4, 8 and so on, without those of no pass. steps and times: of the same edits.
[[nodiscard]] std::vector<width_summary> summarise_widths(std::span<const std::vector<answer_replay::step>> steps,
                                                          std::span<const decoding_times> times);

/// Lists [part, begin, end] in microseconds after the first begin.
[[nodiscard]] nlohmann::ordered_json json_of(std::span<const busy_time> busy);

}  // namespace redline::studies
