#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/studies/common/names.hpp"

namespace redline::studies {

/// The flags are in bench/studies/commands.cpp. Prints tables and returns the exit code. `json` is a file for the
/// figures; "-" means standard output, and empty means none.
struct pie_options {
  std::string model;
  std::string cases;
  std::vector<std::string> tasks{"insert", "delete", "multi", "related_multi_7"};
  std::string language;  // only contexts of this one; empty means all
  std::uint32_t limit = 0;
  std::uint32_t window = 1536;
  std::vector<std::uint32_t> lengths;
  std::uint32_t inserted = 40;
  std::uint32_t exact_max = 4096;
  std::uint32_t samples = 5;
  std::uint32_t threads = 0;
  std::string numerics = "auto";
  std::string kv = "f16";
  std::string json;
};
int run_pie(const pie_options& options);

}  // namespace redline::studies
