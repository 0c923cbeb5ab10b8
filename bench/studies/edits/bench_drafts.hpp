#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/studies/common/names.hpp"

namespace redline::studies {

/// The flags are in bench/studies/commands.cpp. Prints tables and returns the exit code. `json` is a file for the
/// figures; "-" means standard output, and empty means none.
struct draft_study_options {
  std::string model;  // only its tokenizer is used
  std::string edits;
  std::uint32_t count = 8;  // number of edits, at even distances among all
  std::uint32_t tokens_max = 4000;
  double model_right = 0.8;
  bool constants = false;  // also tries each constant at half and at double its value
  std::string json;
};
int run_drafts(const draft_study_options& options);

}  // namespace redline::studies
