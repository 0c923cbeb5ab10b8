#pragma once

#include <optional>
#include <string>
#include <vector>

namespace redline::actors::cli {

/// What was probably meant: the nearest of the names, or the one that begins with the word; nullopt when none is near.
std::optional<std::string> suggest(const std::string& word, const std::vector<std::string>& names);

}  // namespace redline::actors::cli
