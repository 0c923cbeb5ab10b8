#pragma once

#include <string>
#include <string_view>

#include "actors/messages/http_messages.hpp"

namespace redline::actors {

/// The first header of that name, ignoring case; null if there is none.
const std::string* find_header(const header_list& headers, std::string_view name);
/// True if several headers have that name. Two readers could then believe different ones.
bool is_repeated(const header_list& headers, std::string_view name);

}  // namespace redline::actors
