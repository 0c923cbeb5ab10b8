#pragma once

#include <array>
#include <string_view>

namespace redline::actors::cli {

inline constexpr std::array<std::string_view, 3> shells{"bash", "zsh", "fish"};

/// A script for this shell that gets completions from the redline being typed, by "redline complete WORDS...".
std::string_view completion_script(std::string_view shell);

}  // namespace redline::actors::cli
