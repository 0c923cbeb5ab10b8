#pragma once

#include <cstddef>
#include <string_view>

namespace redline {

/// The number of insertions, deletions, replacements and exchanges of adjacent letters that turn one word into the
/// other. The work is the product of the lengths. Source: Damerau, "A technique for computer detection and correction
/// of spelling errors" (1964), with each letter exchanged at most once.
std::size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace redline
