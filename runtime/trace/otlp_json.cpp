#include "runtime/trace/otlp_json.hpp"

#include <charconv>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "runtime/base/strict_json.hpp"
#include "runtime/base/version.hpp"

namespace redline::trace {
namespace {

using json = nlohmann::ordered_json;

/// This encoding represents 64-bit integers as strings.
json encode_value(const attribute_value& value) {
  return std::visit(
      []<class T>(const T& v) -> json {
        if constexpr (std::is_same_v<T, std::string>) {
          return {{"stringValue", v}};
        } else if constexpr (std::is_same_v<T, std::int64_t>) {
          return {{"intValue", std::to_string(v)}};
        } else if constexpr (std::is_same_v<T, double>) {
          return {{"doubleValue", v}};
        } else if constexpr (std::is_same_v<T, bool>) {
          return {{"boolValue", v}};
        } else {
          json values = json::array();
          for (const std::string& one : v) values.push_back({{"stringValue", one}});
          return {{"arrayValue", {{"values", std::move(values)}}}};
        }
      },
      value);
}

json encode_attributes(const auto& attributes) {
  json out = json::array();
  for (const auto& [key, value] : attributes) out.push_back({{"key", key}, {"value", encode_value(value)}});
  return out;
}

std::string to_nanos(instant at, clock_offset clock) {
  return std::to_string((at.time_since_epoch().count() + clock.unix_us_of_zero) * 1000);
}

json encode_span(const span& s, clock_offset clock) {
  json out{{"traceId", s.where.trace_id()}, {"spanId", s.where.span_id()}};
  if (s.parent != 0) out["parentSpanId"] = span_context{.span = s.parent}.span_id();
  out["flags"] = 1;  // sampled, because other spans are not recorded
  out["name"] = s.name;
  out["kind"] = static_cast<int>(s.kind);
  out["startTimeUnixNano"] = to_nanos(s.begin, clock);
  out["endTimeUnixNano"] = to_nanos(s.end, clock);
  out["attributes"] = encode_attributes(s.attributes);
  if (!s.events.empty()) {
    json& events = out["events"] = json::array();
    for (const auto& e : s.events) {
      events.push_back(
          {{"timeUnixNano", to_nanos(e.at, clock)}, {"name", e.name}, {"attributes", encode_attributes(e.attributes)}});
    }
  }
  if (s.events_dropped > 0) out["droppedEventsCount"] = s.events_dropped;
  if (s.has_failed) out["status"] = {{"code", 2}, {"message", s.problem}};
  return out;
}

}  // namespace

clock_offset clock_offset::read() {
  const auto to_us = [](auto since) { return std::chrono::duration_cast<microseconds>(since).count(); };
  return {to_us(std::chrono::system_clock::now().time_since_epoch()) -
          to_us(std::chrono::steady_clock::now().time_since_epoch())};
}

std::string encode_otlp(const resource& from, std::span<const span> spans, clock_offset clock) {
  json encoded = json::array();
  for (const span& s : spans) encoded.push_back(encode_span(s, clock));
  const json scope{{"name", "redline"}, {"version", version()}};
  json scopes = json::array();
  scopes.push_back({{"scope", scope}, {"spans", std::move(encoded)}});
  json resources = json::array();
  resources.push_back({{"resource", {{"attributes", encode_attributes(from)}}}, {"scopeSpans", std::move(scopes)}});
  return dump_json({{"resourceSpans", std::move(resources)}});
}

std::uint64_t read_rejected_spans(std::string_view response) {
  const auto parsed = parse_json<nlohmann::ordered_json>(response);
  if (!parsed || !parsed->is_object()) return 0;
  const auto partial = parsed->find("partialSuccess");
  if (partial == parsed->end() || !partial->is_object()) return 0;
  const auto count = partial->find("rejectedSpans");
  if (count == partial->end()) return 0;
  if (count->is_number_unsigned()) return count->get<std::uint64_t>();
  if (!count->is_string()) return 0;
  const auto& digits = count->get_ref<const std::string&>();
  std::uint64_t out = 0;
  (void)std::from_chars(digits.data(), digits.data() + digits.size(), out);
  return out;
}

}  // namespace redline::trace
