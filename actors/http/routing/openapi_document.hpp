#pragma once

#include <string_view>

namespace redline::actors {

/// docs/openapi.json, as it was when the program was built.
std::string_view openapi_document();

}  // namespace redline::actors
