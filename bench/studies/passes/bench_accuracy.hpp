#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/studies/common/names.hpp"

namespace redline::studies {

/// The flags are in bench/studies/commands.cpp. Prints tables and returns the exit code. `json` is a file for the
/// figures; "-" means standard output, and empty means none.
struct accuracy_options {
  std::string reference;
  std::vector<std::string> models;
  std::string prompts;
  std::vector<std::string> numerics = {"auto"};  // each model is tried with each of them
  std::string kv = "f32";
  std::uint32_t threads = 0;
  std::string json;
};
int run_accuracy(const accuracy_options& options);

}  // namespace redline::studies
