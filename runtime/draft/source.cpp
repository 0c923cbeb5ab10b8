#include "runtime/draft/source.hpp"

#include <algorithm>
#include <utility>

namespace redline::draft {

void graded_draft::truncate(std::size_t count) {
  if (count >= tokens.size()) return;
  tokens.resize(count);
  auto left = static_cast<std::uint32_t>(count);
  for (graded_segment& run : runs) left -= run.count = std::min(run.count, left);
  std::erase_if(runs, [](const graded_segment& run) { return run.count == 0; });
}

void graded_draft::contest(std::size_t from) {
  std::size_t place = 0;
  for (graded_segment run : std::exchange(runs, {})) {
    const auto before = static_cast<std::uint32_t>(std::clamp(from, place, place + run.count) - place);
    place += run.count;
    graded_segment after = run;
    run.count = before;
    after.count -= before;
    after.contested = true;
    add_run(run);
    add_run(after);
  }
}

}  // namespace redline::draft
