#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

namespace redline::trace {

/// A position in a sampled trace: the trace's id, and the span that is the parent of what happens there. Empty if it is
/// not traced or not sampled. Sent in the envelopes of messages.
struct span_context {
  std::uint64_t trace_high = 0;
  std::uint64_t trace_low = 0;
  std::uint64_t span = 0;

  explicit operator bool() const { return span != 0; }
  bool operator==(const span_context&) const = default;
  static constexpr auto fields(auto& self) { return std::tie(self.trace_high, self.trace_low, self.span); }

  /// Formats 32 digits.
  [[nodiscard]] std::string trace_id() const;
  /// Formats 16 digits.
  [[nodiscard]] std::string span_id() const;
};

/// The contents of a request's `traceparent` header.
struct traceparent {
  span_context parent;
  bool is_sampled = false;  // its caller may have recorded it
  bool operator==(const traceparent&) const = default;
};

/// Parses the W3C Trace Context format: "00-" trace id "-" span id "-" flags, in lower-case hex digits, neither id
/// zero. For a later version it reads the same fields, if anything more follows only after a "-". nullopt for anything
/// else.
std::optional<traceparent> parse_traceparent(std::string_view text);

}  // namespace redline::trace
