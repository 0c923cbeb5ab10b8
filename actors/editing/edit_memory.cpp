#include "actors/editing/edit_memory.hpp"

#include <string>

namespace redline::actors {
namespace {

refusal memory_full(const std::string& who, std::size_t most, const std::string& advice) {
  return {
      .what = refusal::kind::memory_full,
      .why = {errc::queue_full,
              who + " may hold " + std::to_string(most) +
                  " bytes of files, their tokens and calls that wait (--live-mib), and this call would exceed it; " +
                  advice + "."}};
}

}  // namespace

std::optional<refusal> edit_memory::claim::resize(std::size_t bytes, const edit_limits& limits) {
  switch (held_.resize(bytes, {limits.tenant_bytes_max, limits.bytes_max})) {
    case verdict::granted:
      break;
    case verdict::tenant_is_full:
      return memory_full("Your edit sessions together", limits.tenant_bytes_max, "close a session or drop files");
    case verdict::all_is_full:
      return memory_full("The edit sessions of this server together", limits.bytes_max,
                         "close a session, drop files, or try again when others have");
  }
  return std::nullopt;
}

}  // namespace redline::actors
