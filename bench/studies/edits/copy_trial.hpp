#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/cli/stopwatch.hpp"
#include "bench/studies/common/answer_replay.hpp"
#include "bench/studies/common/local_runner.hpp"
#include "bench/studies/common/names.hpp"
#include "bench/studies/edits/copy_study.hpp"

namespace redline::studies {

/// Edits executed by the actors of this process, their shortest programs and their whole files. The known tokens are
/// committed in place of the model's choices, which are computed all the same.
struct trial_result {
  std::uint32_t users = 0;
  std::size_t edits = 0;
  std::size_t exact = 0;  // programs that gave the new file
  copy_cover cover;       // of these edits
  // Seconds from the beginning of the first to the end of the last, less those that the prompts alone take; the fastest
  // of the repeats.
  double regular_seconds = 0;  // the whole file, token by token
  double program_seconds = 0;  // the program, without drafts
  double guessed_seconds = 0;  // the program, with drafts of its own and of lookup
  std::uint32_t program_passes = 0;
  std::uint32_t guessed_passes = 0;
};

/// users: at once. Edits that do not fit the context are left out; the rest are taken at even distances and, when they
/// are fewer than users, more than once.
result<trial_result> try_programs(const std::vector<known_edit>& edits, std::uint32_t count, std::uint32_t users,
                                  std::uint32_t answer_tokens_max, std::uint32_t repeats, clock_kind clock,
                                  local_runner& runner, answer_replay& replay);

/// The model's own programs: under the grammar with their spans in place, or as text that nothing holds to it, which is
/// how models that only saw programs in training know them.
struct own_writing {
  std::string name;
  std::optional<copy_options> how;  // null: as text
};
struct own_result {
  std::string writing;
  std::size_t edits = 0;
  std::size_t valid = 0;  // ended by itself, and resolves to the answer
  std::size_t exact = 0;
  std::uint64_t forced = 0;  // spans
  std::uint64_t verified = 0;
};
result<own_result> try_own_programs(const std::vector<known_edit>& edits, std::uint32_t count,
                                    const own_writing& writing, local_runner& runner);

}  // namespace redline::studies
