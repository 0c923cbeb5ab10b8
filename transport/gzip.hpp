#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/result.hpp"

namespace redline::transport {

/// The size that a gzip file (RFC 1952) says its contents have, in bytes; null when it is too short to be one. Nothing
/// is checked but the beginning: `gunzip` holds it to that.
std::optional<std::uint32_t> read_gzip_size(std::string_view file);

/// The contents of a gzip file of one member. Gives up after read_gzip_size bytes, so what it takes is known before.
/// Errors: malformed_message.
result<std::string> gunzip(std::string_view file);

}  // namespace redline::transport
