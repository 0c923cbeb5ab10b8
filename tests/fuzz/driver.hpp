#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

namespace redline::fuzz {

/// Valid inputs of the target, to start from. Each *_fuzz.cpp defines them.
std::vector<std::string> seeds();

/// Checks the result of a parser: a value, or an error with a message.
template<class Answer>
void check(const Answer& answer) {
  if (!answer && answer.error().message.empty()) std::abort();
}

}  // namespace redline::fuzz
