#pragma once

#include <span>
#include <string>

#include "runtime/kv/prefix_index.hpp"

namespace redline::actors {

/// Changes of the prefix cache as a batch of KV events in vLLM's form (vllm/distributed/kv_events.py: msgpack arrays,
/// tagged by their first member), for routers that place requests by what servers keep. Blocks are pages, their hashes
/// prefix keys. Only of texts that all may share: what tenants or salts keep to themselves is not told. Empty when
/// nothing is left to tell.
std::string encode_cache_events(std::span<const kv::prefix_change> changes, double unix_seconds);

}  // namespace redline::actors
