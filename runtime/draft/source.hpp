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

/// Where a draft token comes from.
enum class source : std::uint8_t {
  lookup,      // prompt and output
  model,       // the draft model, with guesses from lookup (Blazedit)
  prediction,  // the client's predicted answer
  program,     // the usual continuation of edit programs and calls
  format,      // what the format of the prompt lets expect (formats)
  mtp,         // the target model's MTP layer
  last_,
};

inline constexpr source all_sources[] = {source::lookup,  source::model,  source::prediction,
                                         source::program, source::format, source::mtp};

/// The name in metrics and usage.
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
    case source::format:
      return "format";
    case source::mtp:
      return "mtp";
    case source::last_:
      break;
  }
  return "?";
}

/// The evidence for a draft token. The outcome of certain tokens says nothing about others, so each grade has a
/// separate record (`acceptance_record`).
inline constexpr std::size_t grades_count = 7;
/// The grade of a copy, by the number of matching tokens before it.
[[nodiscard]] constexpr std::uint8_t grade_of_match(std::uint32_t matched) {
  return static_cast<std::uint8_t>(matched < 4 ? matched : matched < 6 ? 4 : matched < 9 ? 5 : 6);
}
/// The grade of a model's own token, by its probability. Tokens that it agreed to have the highest grade.
[[nodiscard]] constexpr std::uint8_t grade_of_probability(float p) {
  constexpr float bounds[] = {0.3F, 0.5F, 0.7F, 0.85F, 0.95F, 0.99F};
  std::uint8_t grade = 0;
  while (grade < grades_count - 1 && p >= bounds[grade]) ++grade;
  return grade;
}

/// Consecutive tokens of a draft with one source and one grade.
struct graded_segment {
  source from = source::lookup;
  std::uint8_t grade = 0;  // below grades_count
  std::uint32_t count = 0;
  bool contested = false;  // another source disagreed, here or before in this draft

  [[nodiscard]] bool is_like(const graded_segment& other) const {
    return from == other.from && grade == other.grade && contested == other.contested;
  }
  static constexpr auto fields(auto& self) { return std::tie(self.from, self.grade, self.count); }
};

/// Draft tokens and the evidence for them.
struct graded_draft {
  std::vector<token> tokens;
  std::vector<graded_segment> runs;  // their counts add up to the number of tokens

  void add(source from, std::uint8_t grade, std::span<const token> more) {
    tokens.insert(tokens.end(), more.begin(), more.end());
    add_run({from, grade, static_cast<std::uint32_t>(more.size())});
  }
  void add(const graded_draft& more) {
    tokens.insert(tokens.end(), more.tokens.begin(), more.tokens.end());
    for (const graded_segment& run : more.runs) add_run(run);
  }
  /// Keeps the first `count` tokens.
  void truncate(std::size_t count);
  /// Marks the tokens from here on as contested by another source.
  void contest(std::size_t from);

 private:
  void add_run(const graded_segment& run) {
    if (run.count == 0) return;
    if (!runs.empty() && runs.back().is_like(run)) {
      runs.back().count += run.count;
    } else {
      runs.push_back(run);
    }
  }
};

/// Consecutive tokens of a draft with one source and grade, each with the same chance of acceptance if all before it
/// are accepted.
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
