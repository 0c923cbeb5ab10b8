#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/base/result.hpp"
#include "runtime/gguf/gguf_writer.hpp"
#include "runtime/huggingface/json_object.hpp"

namespace redline::huggingface {

/// The files of a folder that describe its tokenizer; the documents must outlive this.
struct tokenizer_files {
  json_object tokenizer;                         // tokenizer.json
  json_object config;                            // config.json
  std::optional<json_object> tokenizer_config;   // tokenizer_config.json
  std::optional<json_object> generation_config;  // generation_config.json
  std::optional<std::string> chat_template;      // chat_template.jinja; takes precedence over tokenizer_config's
};

/// Writes the "tokenizer.*" keys of a model whose embedding has `size` rows: "gpt2" for byte-level BPE, "llama" for BPE
/// with byte_fallback. Special ids come from tokenizer_config, else generation_config, else config. Failures name file
/// and field; whatever a GGUF file or Redline's tokenizers cannot express is unsupported_format.
result<void> put_tokenizer(const tokenizer_files& files, std::uint32_t size, gguf::gguf_writer& to);

}  // namespace redline::huggingface
