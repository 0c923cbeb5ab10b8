#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace redline::fuzz {

/// Inputs that the target takes, to start from. Each *_fuzz.cpp defines it.
std::vector<std::string> seeds();

}  // namespace redline::fuzz
