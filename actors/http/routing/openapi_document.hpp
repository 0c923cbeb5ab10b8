#pragma once

#include <string_view>

namespace redline::actors {

/// The text of docs/openapi.json at build time.
std::string_view openapi_document();

}  // namespace redline::actors
