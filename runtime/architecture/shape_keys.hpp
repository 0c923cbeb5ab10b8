#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/architecture/model_shape.hpp"
#include "runtime/base/result.hpp"
#include "runtime/gguf/gguf_file.hpp"
#include "runtime/gguf/gguf_writer.hpp"

namespace redline::architecture {

/// A size that all families have, from 1 to `most`, under its name in both formats.
struct size_key {
  std::string_view gguf;  // below "<family>."
  std::string_view hub;   // in a config.json
  std::uint32_t model_shape::*into;
  std::uint32_t most;
};
inline constexpr size_key size_keys[] = {
    {"block_count", "num_hidden_layers", &model_shape::layers, layers_max},
    {"context_length", "max_position_embeddings", &model_shape::context, trained_context_max},
    {"embedding_length", "hidden_size", &model_shape::width, width_max},
    {"feed_forward_length", "intermediate_size", &model_shape::feed_forward, width_max},
    {"attention.head_count", "num_attention_heads", &model_shape::heads, width_max},
};

/// Reads and checks the metadata of a known family. A failure names the key that is missing, wrong or unsupported; for
/// an unknown family it names the nearest known ones and what they lack.
result<model_shape> read_shape(const gguf::gguf_file& file);

/// Whether layers of the file's family may keep a state instead of all tokens (layer_kind::recurrent).
[[nodiscard]] bool keeps_states(const gguf::gguf_file& file);
/// Whether it has an MTP layer that is read (model_shape::has_mtp).
[[nodiscard]] bool has_mtp(const gguf::gguf_file& file);

/// Writes general.architecture and the keys below "<family>.", for a file that read_shape reads.
void put_shape(const model_shape& shape, gguf::gguf_writer& to);

}  // namespace redline::architecture
