#pragma once

#include <string>

#include "runtime/base/result.hpp"

namespace redline::actors::cli {

/// Opens `text` in $VISUAL, else $EDITOR, else vi, in a file that is deleted afterwards; what the person made of it.
result<std::string> edit_text(const std::string& text);

}  // namespace redline::actors::cli
