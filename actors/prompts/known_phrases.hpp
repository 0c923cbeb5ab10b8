#pragma once

#include <string>
#include <vector>

#include "runtime/gguf/gguf_file.hpp"

namespace redline::actors {

/// Instructions as examples, of a model that understands few wordings: the demonstration models, which their files
/// name. Empty for all others.
std::vector<std::string> known_phrases(const gguf::gguf_file& model);

}  // namespace redline::actors
