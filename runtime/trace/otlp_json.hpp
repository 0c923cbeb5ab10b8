#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/trace/span.hpp"

namespace redline::trace {

/// What a process says of itself with each export: service.name and others.
using resource = std::vector<std::pair<std::string, attribute_value>>;

/// Where instants lie on the clock of 1970.
struct clock_offset {
  std::int64_t unix_us_of_zero = 0;
  /// By the clocks of now.
  static clock_offset read();
};

/// An ExportTraceServiceRequest in the JSON encoding of OTLP 1.x.
std::string encode_otlp(const resource& from, std::span<const span> spans, clock_offset clock);

/// How many spans an ExportTraceServiceResponse says that the collector has refused; 0 for what is none.
std::uint64_t read_rejected_spans(std::string_view response);

}  // namespace redline::trace
