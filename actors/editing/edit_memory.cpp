#include "actors/editing/edit_memory.hpp"

#include <string>

namespace redline::actors {
namespace {

refusal memory_full(const std::string& who, std::size_t most, const std::string& advice) {
  return {
      .what = refusal::kind::memory_full,
      .why = {errc::queue_full,
              who + " may use at most " + std::to_string(most) +
                  " bytes for files, their tokens and waiting calls (--live-mib), and this call would exceed that; " +
                  advice + "."}};
}

}  // namespace

std::optional<refusal> edit_memory::claim::resize(std::size_t bytes, const edit_limits& limits) {
  switch (held_.resize(bytes, {limits.tenant_bytes_max, limits.bytes_max})) {
    case verdict::granted:
      break;
    case verdict::tenant_is_full:
      return memory_full("Your edit sessions", limits.tenant_bytes_max, "close a session or remove files");
    case verdict::all_is_full:
      return memory_full("The edit sessions of this server", limits.bytes_max,
                         "close a session, remove files, or try again later");
  }
  return std::nullopt;
}

}  // namespace redline::actors
