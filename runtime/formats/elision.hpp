#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace redline::formats {

/// The file with the update put in place, as an apply model is expected to write it. The update contains changed lines
/// with some of their neighbors, and comments such as "// ... existing code ..." in place of lines that it leaves out.
/// Works on lines, without a parser: lines that occur once in the file tell where a block of the update belongs.
///
/// Returns the file unchanged if the update's blocks are not in the file's order, or if nothing tells where they
/// belong. The result is a guess, for drafts only. It has the file's line ends, and a line feed at its end if the file
/// has one. The time is that of sorting the file's lines. `lines_read`, if given, gets how many lines were looked at or
/// compared.
[[nodiscard]] std::string expected_file(std::string_view file, std::string_view update,
                                        std::uint64_t* lines_read = nullptr);

}  // namespace redline::formats
