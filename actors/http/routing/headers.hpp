#pragma once

#include <string>
#include <string_view>

#include "actors/messages/http_messages.hpp"

namespace redline::actors {

/// The first header called `name`, whatever its case; null when there is none.
const std::string* find_header(const header_list& headers, std::string_view name);
/// Whether there are several called so: two readers could believe different ones.
bool is_repeated(const header_list& headers, std::string_view name);

}  // namespace redline::actors
