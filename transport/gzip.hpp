#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/result.hpp"

namespace redline::transport {

/// The size in bytes that a gzip file (RFC 1952) states for its contents; nullopt if it is too short to be one. Only
/// the beginning is checked: `gunzip` enforces the size.
std::optional<std::uint32_t> read_gzip_size(std::string_view file);

/// The contents of a gzip file with one member. Stops after read_gzip_size bytes, so the memory it takes is known in
/// advance. Errors: malformed_message.
result<std::string> gunzip(std::string_view file);

}  // namespace redline::transport
