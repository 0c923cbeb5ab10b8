#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "actors/cli/flags/generation_flags.hpp"
#include "actors/cli/flags/model_flags.hpp"
#include "bench/studies/common/names.hpp"

namespace redline::studies {

/// The flags are in bench/studies/commands.cpp. Prints tables and returns the exit code. `json` is a file for the
/// figures; "-" means standard output, and empty means none.
struct edit_options {
  model_flags models;
  method_flags drafting;
  std::string edits;
  std::vector<std::string> methods;
  std::uint32_t limit = 0;
  std::uint32_t repeats = 1;
  std::uint32_t tokens_max = 0;
  bool replay = false;
  std::optional<double> replay_draft_accuracy;
  std::optional<double> replay_mtp_accuracy;
  std::optional<double> prediction_right;
  std::vector<std::uint32_t> grid_runs;
  std::vector<std::uint32_t> grid_micro;
  std::vector<std::uint32_t> grid_ngram;
  bool timeline = false;
  std::string json;
  std::vector<std::string> merge;
};
int run_edit(const edit_options& options);

}  // namespace redline::studies
