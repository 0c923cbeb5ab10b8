#pragma once

#include <string>
#include <vector>

#include "actors/cli/flags/generation_flags.hpp"
#include "actors/cli/flags/model_flags.hpp"

namespace redline::actors::cli {

/// The flags of `redline edit`.
struct edit_flags {
  model_flags models;
  method_flags method;
  std::vector<std::string> files;
  std::string instruction;
  std::string server;
  std::string api_key;
  std::string patch;
  bool json = false;
  bool write = false;
  bool yes = false;
  bool staged = false;
  bool review = false;
};

}  // namespace redline::actors::cli
