#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/studies/common/names.hpp"

namespace redline::studies {

/// The flags are in bench/studies/commands.cpp. Prints tables and returns the exit code. json: a file for the figures,
/// "-" for standard output, empty for none.
struct draft_study_options {
  std::string model;  // for its tokenizer
  std::string edits;
  std::uint32_t count = 8;  // edits, at even distances among all
  std::uint32_t tokens_max = 4000;
  double model_right = 0.8;
  bool constants = false;  // each constant at half and at double of its value
  std::string json;
};
int run_drafts(const draft_study_options& options);

}  // namespace redline::studies
