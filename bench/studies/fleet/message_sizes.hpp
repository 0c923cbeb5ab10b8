#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace redline::studies {

/// What crosses a broker.
enum class carried : std::uint8_t {
  propose,
  proposal,
  verify_run,
  verified,
  release,  // release_sequence and forget
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

/// Bytes of messages on a link, with envelope and address: real messages, encoded once.
class message_sizes {
 public:
  message_sizes();
  /// tokens: of the log's tail, of the draft, or of the answer; or keys of kept prefixes.
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
