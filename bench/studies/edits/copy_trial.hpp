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

/// Edits executed by the actors of this process, as their shortest programs and as whole files. The known tokens are
/// committed in place of the model's choices, which are still computed.
struct trial_result {
  std::uint32_t users = 0;
  std::size_t edits = 0;
  std::size_t exact = 0;  // how many programs gave the new file
  copy_cover cover;       // what these edits copy
  // Seconds from the start of the first answer to the end of the last, without the time of the prompts alone; the
  // fastest of the repeats.
  double regular_seconds = 0;  // the whole file, token by token
  double program_seconds = 0;  // the program, without drafts
  double guessed_seconds = 0;  // the program, with its own drafts and those of lookup
  std::uint32_t program_passes = 0;
  std::uint32_t guessed_passes = 0;
};

/// `users` answers run at once. Edits that do not fit the context are left out. The others are taken at even distances,
/// and more than once if they are fewer than users.
result<trial_result> try_programs(const std::vector<known_edit>& edits, std::uint32_t count, std::uint32_t users,
                                  std::uint32_t answer_tokens_max, std::uint32_t repeats, clock_kind clock,
                                  local_runner& runner, answer_replay& replay);

/// How the model writes its own programs: under the grammar with inserted spans, or as unconstrained text, which is how
/// models that only saw programs in training write them.
struct own_writing {
  std::string name;
  std::optional<copy_options> how;  // null means as text
};
struct own_result {
  std::string writing;
  std::size_t edits = 0;
  std::size_t valid = 0;  // how many ended by themselves and resolve to the answer
  std::size_t exact = 0;
  std::size_t refused = 0;        // how many had a span that the model refused
  std::size_t refused_exact = 0;  // how many of these were exact all the same
  std::uint64_t forced = 0;       // number of spans
  std::uint64_t verified = 0;
};
result<own_result> try_own_programs(const std::vector<known_edit>& edits, std::uint32_t count,
                                    const own_writing& writing, local_runner& runner);

}  // namespace redline::studies
