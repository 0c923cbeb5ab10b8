#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redline::actors::cli {

/// How many letters must be put in, left out, replaced or exchanged with their neighbour to make one word of the other.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// What was probably meant: the nearest of the names, or the one that begins with the word; nullopt when none is near.
std::optional<std::string> suggest(const std::string& word, const std::vector<std::string>& names);

}  // namespace redline::actors::cli
