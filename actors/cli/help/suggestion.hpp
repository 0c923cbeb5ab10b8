#pragma once

#include <optional>
#include <string>
#include <vector>

namespace redline::actors::cli {

/// The word that was probably meant: the nearest name, or the one that begins with the word. nullopt if none is near.
std::optional<std::string> suggest(const std::string& word, const std::vector<std::string>& names);

}  // namespace redline::actors::cli
