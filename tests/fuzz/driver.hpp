#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

namespace redline::fuzz {

/// Inputs that the target takes, to start from. Each *_fuzz.cpp defines it.
std::vector<std::string> seeds();

/// What a parser gave: a value, or an error with a message.
template<class Answer>
void check(const Answer& answer) {
  if (!answer && answer.error().message.empty()) std::abort();
}

}  // namespace redline::fuzz
