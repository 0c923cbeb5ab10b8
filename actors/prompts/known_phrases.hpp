#pragma once

#include <string>
#include <vector>

#include "runtime/gguf/gguf_file.hpp"

namespace redline::actors {

/// Example instructions for a model that understands few wordings, which only the demonstration models do. Their files
/// identify them; empty for all others.
std::vector<std::string> known_phrases(const gguf::gguf_file& model);

}  // namespace redline::actors
