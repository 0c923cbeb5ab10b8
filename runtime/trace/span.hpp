#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/base/environment.hpp"
#include "runtime/trace/span_context.hpp"

namespace redline::trace {

using attribute_value = std::variant<std::string, std::int64_t, double, bool, std::vector<std::string>>;

struct attribute {
  std::string_view key;  // a literal
  attribute_value value;
};

/// The kinds, with OpenTelemetry's numbers.
enum class span_kind : std::uint8_t { internal = 1, server = 2, client = 3 };

struct span_event {
  instant at;
  std::string_view name;  // a literal
  std::vector<attribute> attributes;
};

inline constexpr std::size_t span_events_max = 64;

/// A timed operation.
struct span {
  span_context where;        // its own context
  std::uint64_t parent = 0;  // 0 if the trace begins with it
  std::string name;
  span_kind kind = span_kind::internal;
  instant begin, end;
  std::vector<attribute> attributes;
  std::vector<span_event> events;  // at most the first span_events_max
  std::uint32_t events_dropped = 0;
  bool has_failed = false;
  std::string problem;  // why it failed
};

}  // namespace redline::trace
