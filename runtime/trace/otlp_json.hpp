#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/trace/span.hpp"

namespace redline::trace {

/// The description of a process in each export: service.name and others.
using resource = std::vector<std::pair<std::string, attribute_value>>;

/// Converts instants to Unix time.
struct clock_offset {
  std::int64_t unix_us_of_zero = 0;
  /// Reads the current clocks.
  static clock_offset read();
};

/// An ExportTraceServiceRequest in the JSON encoding of OTLP 1.x.
std::string encode_otlp(const resource& from, std::span<const span> spans, clock_offset clock);

/// The number of spans that an ExportTraceServiceResponse reports as rejected; 0 for anything else.
std::uint64_t read_rejected_spans(std::string_view response);

}  // namespace redline::trace
