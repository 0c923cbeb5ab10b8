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

/// Why a bridge did not take what another process sent.
enum class bridge_refusal : std::uint8_t {
  key,        // its key may not connect
  malformed,  // no frame, or of another version
  sender,     // it speaks for a process that it is not, or that its key may not be
  process,    // its hello does not fit, or another process has its place
  stale,      // of or for a process that has died
  message,    // its role does not send such messages
  receiver,   // an address that other processes may not reach
  last_,
};
inline constexpr std::array<std::string_view, static_cast<std::size_t>(bridge_refusal::last_)> bridge_refusal_names = {
    "key", "malformed", "sender", "process", "stale", "message", "receiver"};

/// Which lines may be written: the same words once a minute, and so many together. A process that was refused may not
/// try again for long, so the first line is not kept back. From any thread.
class refusal_rate {
 public:
  using clock = std::chrono::steady_clock;
  static constexpr std::size_t lines_max = 60;

  bool allows(const std::string& what, clock::time_point now);

 private:
  std::mutex mutex_;
  std::map<std::string, clock::time_point> said_;  // and until when not again
};

void count_refusal(bridge_refusal why);
/// Counts a refusal, and logs it as often as `refusal_rate` allows.
void note_refusal(bridge_refusal why, const std::string& what);

/// How often each happened in this process since it started. From any thread.
using bridge_counts = std::array<std::uint64_t, static_cast<std::size_t>(bridge_refusal::last_)>;
bridge_counts read_bridge_counts();

}  // namespace redline::transport
