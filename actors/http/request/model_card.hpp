#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace redline::api {

/// What clients are told of a model, each API in its own words.
struct model_card {
  std::string id;
  std::vector<std::string> aliases;  // listed when there are any, as llama.cpp does
  std::int64_t created_seconds = 0;
  std::string owned_by = "redline";
  std::uint32_t context_tokens_max = 0;
  std::size_t vocabulary_size = 0;
  std::vector<std::string> known_phrases;  // listed when there are any
  struct kind {
    std::string name;                // what the answers' bits depend on beside the file
    std::string system_fingerprint;  // of answers that were computed so
  };
  std::vector<kind> numerics;  // of the workers that there are; empty: not known
};

}  // namespace redline::api
