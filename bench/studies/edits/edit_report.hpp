#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/studies/common/answer_replay.hpp"
#include "bench/studies/common/names.hpp"
#include "bench/studies/edits/edit_timeline.hpp"
#include "runtime/base/result.hpp"

namespace redline::studies {

/// One edit by one method, the fastest of its repeats.
struct edit_run {
  std::string edit;
  std::string method;
  double edit_ratio = 0;
  std::uint64_t characters = 0;  // length of the answer
  std::uint32_t prompt_tokens = 0;
  std::uint32_t tokens = 0;
  double seconds = 0;              // time of prompt and answer
  double first_token_seconds = 0;  // time of the prompt
  std::uint32_t target_passes = 0;
  std::uint32_t draft_passes = 0;
  std::uint32_t drafted = 0;
  std::uint32_t accepted = 0;
  std::uint32_t least_rounds = 0;  // see least_rounds.hpp; 0 if the answer is not known
  bool identical = true;           // every repeat gave the tokens and bytes of regular
  bool as_wanted = false;          // the answer contains the known result
  std::vector<answer_replay::step> steps;
  std::vector<busy_time> timeline;  // with --timeline; not in parsed runs

  [[nodiscard]] double characters_per_second() const;
  /// The rate without the prompt and the first token.
  [[nodiscard]] double decoded_per_second() const;
};

/// All edits by one method.
struct method_summary {
  std::string method;
  std::size_t edits = 0;
  double mean_rate = 0;              // characters per second
  double worst_decile_rate = 0;      // the 10th percentile over the edits
  double decoded_rate = 0;           // the mean without prompts
  double mean_speed_up = 0;          // mean_rate relative to regular's; these are 0 without regular
  double worst_decile_speed_up = 0;  // worst_decile_rate relative to regular's
  double decoded_speed_up = 0;
  std::uint64_t target_passes = 0;
  std::uint64_t draft_passes = 0;
  std::uint64_t drafted = 0;
  std::uint64_t accepted = 0;
  std::uint64_t rounds = 0;
  std::uint64_t least_rounds = 0;  // of the runs that have them
  std::uint64_t tokens = 0;
  std::size_t as_wanted = 0;
  bool identical = true;

  [[nodiscard]] double accepted_per_pass() const;
  /// The refused tokens as a share of those drafted.
  [[nodiscard]] double refused_share() const;
};

/// Lists the methods in the order in which they first appear.
[[nodiscard]] std::vector<method_summary> summarise(const std::vector<edit_run>& runs);

[[nodiscard]] nlohmann::ordered_json json_of(const edit_run& run);
[[nodiscard]] nlohmann::ordered_json json_of(const method_summary& summary);

/// Parses the runs that 'bench edit --json' wrote; `name` is the file's name, for failures. Where drafts or predictions
/// were made right to a degree, the names of the methods that use them include it.
[[nodiscard]] result<std::vector<edit_run>> parse_edit_runs(const std::string& text, const std::string& name);

}  // namespace redline::studies
