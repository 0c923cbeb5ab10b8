#pragma once

#include <cstddef>
#include <string_view>

namespace redline {

/// How many letters must be put in, left out, replaced or exchanged with their neighbor to make one word of the other.
/// The work is the product of the lengths. Source: Damerau, "A technique for computer detection and correction of
/// spelling errors" (1964), with each letter exchanged at most once.
std::size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace redline
