#pragma once

#include <memory>
#include <string_view>

#include "runtime/jinja/ast.hpp"

namespace redline::jinja {

/// Throws error with the line if the source is malformed or not supported, such as an unknown tag, filter or test.
std::unique_ptr<const template_program> parse_template(std::string_view source);

}  // namespace redline::jinja
