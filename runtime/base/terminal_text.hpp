#pragma once

#include <string>
#include <string_view>

namespace redline {

/// Text of unknown origin as a terminal may be given it, which obeys control characters and turns the direction of
/// letters: those of C0 become "^[", of C1 "<U+009B>", those of direction "<U+202E>", and bytes that are no UTF-8
/// "<9B>", because some terminals take them for C1. Tabs and line feeds stay.
[[nodiscard]] std::string shown_on_terminal(std::string_view text);

}  // namespace redline
