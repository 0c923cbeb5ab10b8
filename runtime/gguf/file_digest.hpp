#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/gguf/gguf_file.hpp"

namespace redline::gguf {

/// Distinguishes model files in milliseconds: hashes all metadata, each tensor's name, type, shape and size, and four
/// samples of 64 bytes of its content. Files that differ only in other bytes of a tensor have the same digest; models
/// trained, converted or quantized in different ways do not.
std::uint64_t compute_file_digest(const gguf_file& file);

/// Hashes all bytes that `gguf_file::copy_header` returns, in order.
std::uint64_t compute_header_digest(std::string_view header);

}  // namespace redline::gguf
