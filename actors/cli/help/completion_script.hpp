#pragma once

#include <array>
#include <string_view>

namespace redline::actors::cli {

inline constexpr std::array<std::string_view, 3> shells{"bash", "zsh", "fish"};

/// A script by which this shell asks the redline that is typed ("redline complete WORDS...") what may follow.
std::string_view completion_script(std::string_view shell);

}  // namespace redline::actors::cli
