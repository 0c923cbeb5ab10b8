#pragma once

#include <span>
#include <string>

#include "runtime/kv/prefix_index.hpp"

namespace redline::actors {

/// Encodes changes of the prefix cache as a batch of KV events in vLLM's form (vllm/distributed/kv_events.py: msgpack
/// arrays, tagged by their first member), for routers that place requests by what servers have cached. Blocks are
/// pages, and their hashes prefix keys. Reports only texts that all may share, not those kept to a tenant or a salt.
/// Empty when nothing is left to report.
std::string encode_cache_events(std::span<const kv::prefix_change> changes, double unix_seconds);

}  // namespace redline::actors
