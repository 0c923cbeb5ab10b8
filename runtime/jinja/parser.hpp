#pragma once

#include <memory>
#include <string_view>

#include "runtime/jinja/ast.hpp"

namespace redline::text {

/// Throws jinja_error with the line for what is malformed and for what is not supported, such as an unknown tag, filter
/// or test.
std::unique_ptr<const jinja_program> jinja_parse(std::string_view source);

}  // namespace redline::text
