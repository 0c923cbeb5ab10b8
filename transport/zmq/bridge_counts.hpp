#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace redline::transport {

/// Why a bridge or broker refused what another process sent.
enum class bridge_refusal : std::uint8_t {
  key,        // its key may not connect
  malformed,  // it is not a frame, or has another version
  sender,     // it claims to be from another process, or from one that its key does not allow
  process,    // its hello is not acceptable, or another process has its number
  stale,      // from or to a process that has ended
  message,    // its role does not send such messages
  receiver,   // an address that other processes may not reach
  last_,
};
inline constexpr std::array<std::string_view, static_cast<std::size_t>(bridge_refusal::last_)> bridge_refusal_names = {
    "key", "malformed", "sender", "process", "stale", "message", "receiver"};

/// Decides which lines may be logged: the same words once a minute, and at most lines_max different ones. A refused
/// process may not try again for long, so the first line is logged at once. Thread-safe.
class refusal_rate {
 public:
  using clock = std::chrono::steady_clock;
  static constexpr std::size_t lines_max = 60;

  bool allows(const std::string& what, clock::time_point now);

 private:
  std::mutex mutex_;
  std::map<std::string, clock::time_point> said_;  // lines and until when they must not be repeated
};

void count_refusal(bridge_refusal why);
/// Counts a refusal, and logs it as often as `refusal_rate` allows.
void note_refusal(bridge_refusal why, const std::string& what);

/// How often each refusal happened since the process started. Thread-safe.
using bridge_counts = std::array<std::uint64_t, static_cast<std::size_t>(bridge_refusal::last_)>;
bridge_counts read_bridge_counts();

}  // namespace redline::transport
