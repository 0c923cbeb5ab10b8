#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>

namespace redline::draft {

/// Where a draft token was taken from.
enum class source : std::uint8_t {
  lookup,      // prompt and output
  model,       // the draft model, with what lookup told it (Blazedit)
  prediction,  // what the client said the answer will be
  program,     // how edit programs usually go on
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

/// How much speaks for tokens of a draft, so that what became of sure ones does not speak for the others.
inline constexpr std::size_t grades_count = 7;
/// Of a copy, by the tokens before it that match: behind many follow long copies, behind a single one hardly any.
[[nodiscard]] constexpr std::uint8_t grade_of_match(std::uint32_t matched) {
  return static_cast<std::uint8_t>(matched < 4 ? matched : matched < 6 ? 4 : matched < 9 ? 5 : 6);
}
/// Of the draft model's own token, by the probability it gave it. What it agreed to has the highest.
[[nodiscard]] constexpr std::uint8_t grade_of_probability(float p) {
  constexpr float bounds[] = {0.3F, 0.5F, 0.7F, 0.85F, 0.95F, 0.99F};
  std::uint8_t grade = 0;
  while (grade < grades_count - 1 && p >= bounds[grade]) ++grade;
  return grade;
}

/// Consecutive tokens of a draft with one source.
struct draft_part {
  source from = source::lookup;
  std::uint32_t count = 0;
  std::uint8_t grade = 0;  // under grades_count: the higher, the more speaks for it
  bool operator==(const draft_part&) const = default;
  static constexpr auto fields(auto& self) { return std::tie(self.from, self.count, self.grade); }
};

}  // namespace redline::draft
