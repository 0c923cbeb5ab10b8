#include "actors/node/cache_events.hpp"

#include <msgpack.hpp>
#include <string_view>
#include <vector>

namespace redline::actors {
namespace {

using kv::prefix_change;
using packer = msgpack::packer<msgpack::sbuffer>;

// The storage medium; vLLM uses this name on CPUs, too.
constexpr std::string_view medium = "GPU";

void pack_hashes(packer& out, std::span<const prefix_change* const> run) {
  out.pack_array(static_cast<std::uint32_t>(run.size()));
  for (const auto* change : run) out.pack_uint64(change->key);
}

void pack_stored(packer& out, std::span<const prefix_change* const> run) {
  out.pack_array(8);
  out.pack("BlockStored");
  pack_hashes(out, run);
  if (run.front()->parent == 0) {
    out.pack_nil();
  } else {
    out.pack_uint64(run.front()->parent);
  }
  out.pack_array(static_cast<std::uint32_t>(run.size() * kv::page_tokens));
  for (const auto* change : run) {
    for (const token t : change->tokens) out.pack_int32(t);
  }
  out.pack_uint32(kv::page_tokens);
  out.pack_nil();  // no adapter,
  out.pack(medium);
  out.pack_nil();  // and no name of one
}

void pack_removed(packer& out, std::span<const prefix_change* const> run) {
  out.pack_array(3);
  out.pack("BlockRemoved");
  pack_hashes(out, run);
  out.pack(medium);
}

void pack_cleared(packer& out) {
  out.pack_array(1);
  out.pack("AllBlocksCleared");
}

/// Whether one event reports both.
bool belong_together(const prefix_change& a, const prefix_change& b) {
  if (a.what != b.what || a.what == prefix_change::kind::cleared) return false;
  return a.what == prefix_change::kind::removed || b.parent == a.key;
}

}  // namespace

std::string encode_cache_events(std::span<const prefix_change> changes, double unix_seconds) {
  std::vector<std::vector<const prefix_change*>> runs;
  for (const auto& change : changes) {
    if (change.tenant.value != 0) continue;
    if (runs.empty() || !belong_together(*runs.back().back(), change)) runs.emplace_back();
    runs.back().push_back(&change);
  }
  if (runs.empty()) return {};
  msgpack::sbuffer buffer;
  packer out(buffer);
  out.pack_array(3);
  out.pack_double(unix_seconds);
  out.pack_array(static_cast<std::uint32_t>(runs.size()));
  for (const auto& run : runs) {
    switch (run.front()->what) {
      case prefix_change::kind::stored:
        pack_stored(out, run);
        break;
      case prefix_change::kind::removed:
        pack_removed(out, run);
        break;
      case prefix_change::kind::cleared:
        pack_cleared(out);
        break;
    }
  }
  out.pack_uint32(0);  // the rank among servers of one model that share a port
  return {buffer.data(), buffer.size()};
}

}  // namespace redline::actors
