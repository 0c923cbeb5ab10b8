#pragma once

#include <string>

#include "runtime/base/result.hpp"

namespace redline::actors::cli {

/// Opens `text` in $VISUAL, else $EDITOR, else vi, in a temporary file. Returns the text that the user saved.
result<std::string> edit_text(const std::string& text);

}  // namespace redline::actors::cli
