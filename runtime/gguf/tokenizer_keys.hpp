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

/// Copies every "tokenizer.*" key, with the per-token arrays padded by unused tokens to `size` entries. A failure when
/// the file has more tokens than that, or none.
result<void> copy_tokenizer(const gguf_file& from, std::uint32_t size, gguf_writer& to);

/// A byte-level vocabulary: control tokens as in Qwen2's files, the 256 bytes, some merges of letter pairs, unused ones
/// up to `size`. Fewer than 300 leave out merges and bytes from the end.
void put_byte_tokenizer(std::uint32_t size, gguf_writer& to);

/// What stands in a row of the embedding that no token has.
std::string unused_token(std::size_t id);

}  // namespace redline::gguf
