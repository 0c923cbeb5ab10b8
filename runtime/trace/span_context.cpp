#include "runtime/trace/span_context.hpp"

#include "runtime/base/hex.hpp"

namespace redline::trace {
namespace {

constexpr std::size_t version_at = 0, trace_at = 3, span_at = 36, flags_at = 53, known_bytes = 55;

/// Accepts only lower-case digits. Callers pass at most 16.
bool read_hex(std::string_view digits, std::uint64_t& out) {
  out = 0;
  for (const char c : digits) {
    if (c >= '0' && c <= '9')
      out = out << 4 | static_cast<std::uint64_t>(c - '0');
    else if (c >= 'a' && c <= 'f')
      out = out << 4 | static_cast<std::uint64_t>(c - 'a' + 10);
    else
      return false;
  }
  return true;
}

}  // namespace

std::string span_context::trace_id() const { return to_hex(trace_high) + to_hex(trace_low); }
std::string span_context::span_id() const { return to_hex(span); }

std::optional<traceparent> parse_traceparent(std::string_view text) {
  if (text.size() < known_bytes) return std::nullopt;
  for (const std::size_t dash : {trace_at - 1, span_at - 1, flags_at - 1}) {
    if (text[dash] != '-') return std::nullopt;
  }
  traceparent out;
  std::uint64_t version = 0, flags = 0;
  auto& at = out.parent;
  const bool is_hex = read_hex(text.substr(version_at, 2), version) &&
                      read_hex(text.substr(trace_at, 16), at.trace_high) &&
                      read_hex(text.substr(trace_at + 16, 16), at.trace_low) &&
                      read_hex(text.substr(span_at, 16), at.span) && read_hex(text.substr(flags_at, 2), flags);
  if (!is_hex || version == 0xff) return std::nullopt;
  if (at.span == 0 || (at.trace_high == 0 && at.trace_low == 0)) return std::nullopt;
  if (text.size() > known_bytes && (version == 0 || text[known_bytes] != '-')) return std::nullopt;
  out.is_sampled = (flags & 1) != 0;
  return out;
}

}  // namespace redline::trace
