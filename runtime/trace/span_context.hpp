#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

namespace redline::trace {

/// A place in a sampled trace: its id, and the span that is the parent of what happens there. Of what is not traced, or
/// not sampled, empty. Travels in the envelopes of messages.
struct span_context {
  std::uint64_t trace_high = 0;
  std::uint64_t trace_low = 0;
  std::uint64_t span = 0;

  explicit operator bool() const { return span != 0; }
  bool operator==(const span_context&) const = default;
  static constexpr auto fields(auto& self) { return std::tie(self.trace_high, self.trace_low, self.span); }

  /// 32 digits.
  [[nodiscard]] std::string trace_id() const;
  /// 16 digits.
  [[nodiscard]] std::string span_id() const;
};

/// What a request's `traceparent` says.
struct traceparent {
  span_context parent;
  bool is_sampled = false;  // its caller may have recorded it
  bool operator==(const traceparent&) const = default;
};

/// As W3C Trace Context has it: "00-" trace id "-" span id "-" flags, in lower-case hex digits, neither id zero. Of a
/// later version what this one knows, if more follows only after a "-". Anything else is none.
std::optional<traceparent> parse_traceparent(std::string_view text);

}  // namespace redline::trace
