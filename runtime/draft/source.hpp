#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

#include "runtime/base/ids.hpp"
#include "runtime/cost/draft_segment.hpp"

namespace redline::draft {

/// Where a draft token was taken from.
enum class source : std::uint8_t {
  lookup,      // prompt and output
  model,       // the draft model, with what lookup told it (Blazedit)
  prediction,  // what the client said the answer will be
  program,     // how edit programs and calls usually go on
  last_,
};

inline constexpr source all_sources[] = {source::lookup, source::model, source::prediction, source::program};

/// As metrics and usage call it.
[[nodiscard]] constexpr std::string_view name_of(source from) {
  switch (from) {
    case source::lookup:
      return "lookup";
    case source::model:
      return "draft";
    case source::prediction:
      return "prediction";
    case source::program:
      return "program";
    case source::last_:
      break;
  }
  return "?";
}

/// The evidence for a draft token. What became of sure tokens says nothing about the others, so each grade has a record
/// of its own (`acceptance_record`).
inline constexpr std::size_t grades_count = 7;
/// Of a copy: by the number of tokens before it that match.
[[nodiscard]] constexpr std::uint8_t grade_of_match(std::uint32_t matched) {
  return static_cast<std::uint8_t>(matched < 4 ? matched : matched < 6 ? 4 : matched < 9 ? 5 : 6);
}
/// Of the draft model's own token: by the probability it gave it. What it agreed to has the highest.
[[nodiscard]] constexpr std::uint8_t grade_of_probability(float p) {
  constexpr float bounds[] = {0.3F, 0.5F, 0.7F, 0.85F, 0.95F, 0.99F};
  std::uint8_t grade = 0;
  while (grade < grades_count - 1 && p >= bounds[grade]) ++grade;
  return grade;
}

/// Consecutive tokens of a draft with one source and one grade.
struct graded_run {
  source from = source::lookup;
  std::uint8_t grade = 0;  // under grades_count
  std::uint32_t count = 0;
  bool contested = false;  // another source said something else, here or before in this draft

  [[nodiscard]] bool is_like(const graded_run& other) const {
    return from == other.from && grade == other.grade && contested == other.contested;
  }
  static constexpr auto fields(auto& self) { return std::tie(self.from, self.grade, self.count); }
};

/// Draft tokens and what speaks for them.
struct graded_draft {
  std::vector<token> tokens;
  std::vector<graded_run> runs;  // their counts add up to tokens

  void add(source from, std::uint8_t grade, std::span<const token> more) {
    tokens.insert(tokens.end(), more.begin(), more.end());
    add_run({from, grade, static_cast<std::uint32_t>(more.size())});
  }
  void add(const graded_draft& more) {
    tokens.insert(tokens.end(), more.tokens.begin(), more.tokens.end());
    for (const graded_run& run : more.runs) add_run(run);
  }
  /// Keeps the first `count` tokens.
  void truncate(std::size_t count);
  /// From this token on another source said something else.
  void contest(std::size_t from);

 private:
  void add_run(const graded_run& run) {
    if (run.count == 0) return;
    if (!runs.empty() && runs.back().is_like(run)) {
      runs.back().count += run.count;
    } else {
      runs.push_back(run);
    }
  }
};

/// Consecutive tokens of a draft with one source and grade, each with the same chance to be accepted if all before it
/// are.
struct draft_part {
  static constexpr std::uint16_t certain = 10'000;

  source from = source::lookup;
  std::uint32_t count = 0;
  std::uint8_t grade = 0;
  std::uint16_t chance_e4 = certain;  // in 1/10,000

  [[nodiscard]] double chance() const { return chance_e4 < certain ? chance_e4 / double{certain} : 1.0; }
  [[nodiscard]] cost::draft_segment as_segment() const { return {count, chance()}; }
  bool operator==(const draft_part&) const = default;
};

}  // namespace redline::draft
