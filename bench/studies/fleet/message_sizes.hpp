#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace redline::studies {

/// The messages that cross a broker.
enum class carried : std::uint8_t {
  propose,
  proposal,
  verify_run,
  verified,
  release,  // stands for release_sequence and forget
  refused,
  report_status,
  scheduler_report,
  read_kept,
  kept_prefixes,
  beat,         // between a process and the broker, both ways
  member_news,  // from the broker
  last_,
};
inline constexpr std::size_t carried_count = static_cast<std::size_t>(carried::last_);
std::string_view name_of(carried what);

/// The bytes of messages on a link, with envelope and address, from real messages that are encoded once.
class message_sizes {
 public:
  message_sizes();
  /// `tokens` counts the log's tail, the draft or the answer, or the keys of cached prefixes.
  [[nodiscard]] double bytes(carried what, std::uint32_t tokens) const {
    const auto& s = sizes_[static_cast<std::size_t>(what)];
    return s.base + s.token * tokens;
  }

 private:
  struct size {
    double base = 0, token = 0;
  };
  std::array<size, carried_count> sizes_;
};

/// Messages and bytes by kind.
struct traffic {
  std::array<std::uint64_t, carried_count> messages{};
  std::array<double, carried_count> bytes{};

  void add(carried what, std::uint64_t count, double each) {
    messages[static_cast<std::size_t>(what)] += count;
    bytes[static_cast<std::size_t>(what)] += static_cast<double>(count) * each;
  }
};

}  // namespace redline::studies
