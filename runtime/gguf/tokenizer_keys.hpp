#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/result.hpp"
#include "runtime/gguf/gguf_file.hpp"
#include "runtime/gguf/gguf_writer.hpp"

namespace redline::gguf {

/// What a token is for, with the numbers of "tokenizer.ggml.token_type".
enum class token_kind : std::int32_t { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };

/// GPT-2's printable character for a byte, in UTF-8.
std::string byte_character(unsigned char byte);

/// Copies every "tokenizer.*" key, with the per-token arrays padded by unused tokens to `size` entries. Fails if the
/// file has no tokens, or more than that.
result<void> copy_tokenizer(const gguf_file& from, std::uint32_t size, gguf_writer& to);

/// Writes a byte-level vocabulary: control tokens as in Qwen2's files, the 256 bytes, some merges of letter pairs, and
/// unused tokens up to `size`. Below 300, merges and bytes are left out from the end.
void put_byte_tokenizer(std::uint32_t size, gguf_writer& to);

/// The text for a row of the embedding that has no token.
std::string unused_token(std::size_t id);

}  // namespace redline::gguf
