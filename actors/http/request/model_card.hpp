#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace redline::api {

/// A model's description for clients; each API writes it in its own shape.
struct model_card {
  std::string id;
  std::vector<std::string> aliases;  // listed if there are any, as llama.cpp does
  std::int64_t created_seconds = 0;
  std::string owned_by = "redline";
  std::uint32_t context_tokens_max = 0;
  std::size_t vocabulary_size = 0;
  std::vector<std::string> known_phrases;  // listed if there are any
  struct kind {
    std::string name;                // its answers' bits depend on this and the file
    std::string system_fingerprint;  // fingerprint of answers computed this way
  };
  std::vector<kind> numerics;  // numerics of the present workers; empty if not known
};

}  // namespace redline::api
