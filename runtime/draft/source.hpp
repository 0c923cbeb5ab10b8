#pragma once

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

/// Consecutive tokens of a draft with one source.
struct draft_part {
  source from = source::lookup;
  std::uint32_t count = 0;
  bool operator==(const draft_part&) const = default;
  static constexpr auto fields(auto& self) { return std::tie(self.from, self.count); }
};

}  // namespace redline::draft
