#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "runtime/base/result.hpp"

namespace redline::transport {

/// The contents of a Brotli stream (RFC 7932), which does not state their size: at most `bytes_max`.
/// Errors: malformed_message, and unsupported_format if there is more.
result<std::string> read_brotli(std::string_view stream, std::size_t bytes_max);

}  // namespace redline::transport
