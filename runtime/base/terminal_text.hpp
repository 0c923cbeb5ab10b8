#pragma once

#include <string>
#include <string_view>

namespace redline {

/// Makes untrusted text safe for a terminal, which obeys control characters and changes of direction: C0 controls
/// become "^[", C1 "<U+009B>", direction controls "<U+202E>". Bytes that are not UTF-8 become "<9B>", because some
/// terminals take them for C1. Tabs and line feeds stay.
[[nodiscard]] std::string shown_on_terminal(std::string_view text);

}  // namespace redline
