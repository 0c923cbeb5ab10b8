#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/gguf/gguf_file.hpp"

namespace redline::gguf {

/// Tells model files apart in milliseconds: of all metadata, each tensor's name, type, shape and size, and four samples
/// of 64 bytes of its content. Files that differ only in other bytes of a tensor have the same digest; models that were
/// trained, converted or quantized in different ways have not.
std::uint64_t compute_file_digest(const gguf_file& file);

/// Of the bytes that `gguf_file::copy_header` gives: all of them count, in their order.
std::uint64_t compute_header_digest(std::string_view header);

}  // namespace redline::gguf
