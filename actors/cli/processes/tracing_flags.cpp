#include "actors/cli/processes/tracing_flags.hpp"

#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/hex.hpp"

namespace redline::actors::cli {
namespace {

constexpr std::string_view traces_path = "/v1/traces";
constexpr std::size_t list_bytes_max = 16 << 10;

std::string trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(" \t") - begin + 1));
}

using pairs = std::vector<std::pair<std::string, std::string>>;

/// Parses "name=value,name=value" with percent-encoded values.
result<pairs> read_pairs(const char* variable, std::string_view text) {
  const auto refuse = [&](const std::string& why) {
    return failure{errc::invalid_argument,
                   std::string(variable) + ": expected NAME=VALUE,NAME=VALUE with values percent-encoded, " + why};
  };
  if (text.size() > list_bytes_max) return refuse("found " + std::to_string(text.size()) + " bytes");
  pairs out;
  while (!text.empty()) {
    const auto comma = text.find(',');
    const std::string one = trimmed(text.substr(0, comma));
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
    if (one.empty()) continue;
    const auto equals = one.find('=');
    if (equals == 0 || equals == std::string::npos) return refuse("found an entry without a name or without '='");
    auto value = percent_decoded(trimmed(std::string_view(one).substr(equals + 1)));
    if (!value) return refuse("found a broken percent-encoding");
    for (const char c : *value) {
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return refuse("found a control character");
    }
    out.emplace_back(trimmed(std::string_view(one).substr(0, equals)), std::move(*value));
  }
  return out;
}

/// is_base: whether to add /v1/traces to an address that does not end with it.
result<transport::http_url> read_url(const std::string& where, const std::string& text, bool is_base) {
  auto url = transport::parse_http_url(text);
  if (!url) {
    return failure{errc::invalid_argument,
                   where + ": expected http://HOST:PORT or https://HOST:PORT, found " + quote_bytes(text)};
  }
  if (!is_base || url->target.ends_with(traces_path)) return url;
  while (url->target.ends_with('/')) url->target.pop_back();
  url->target += traces_path;
  return url;
}

/// The more specific setting takes precedence.
struct found_variable {
  const char* name = nullptr;
  std::string value;
};
found_variable first_of(const environment_reader& environment, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (auto value = environment(name); !value.empty()) return {name, std::move(value)};
  }
  return {};
}

}  // namespace

std::string environment_variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

void add_tracing_flags(command c, tracing_flags& flags) {
  c.add(
       "--otlp-endpoint", flags.otlp_endpoint,
       "Send OpenTelemetry traces as OTLP over HTTP to this collector, http://HOST:PORT, to which /v1/traces is added; "
       "default: the value of OTEL_EXPORTER_OTLP_ENDPOINT; without either there are no traces")
      .group("Traces");
}

void add_sampling_flag(command c, tracing_flags& flags) {
  c.add("--otlp-ratio", flags.ratio,
        "Share of the requests without a traceparent header that are traced; the caller decides for requests that have "
        "one")
      .range(0.0, 1.0)
      .group("Traces");
}

result<std::optional<transport::otlp_options>> to_otlp_options(const tracing_flags& flags, const std::string& service,
                                                               const environment_reader& environment) {
  transport::otlp_options out;
  if (!flags.otlp_endpoint.empty()) {
    REDLINE_TRY_ASSIGN(out.url, read_url("--otlp-endpoint", flags.otlp_endpoint, true));
  } else {
    if (environment("OTEL_SDK_DISABLED") == "true" || environment("OTEL_TRACES_EXPORTER") == "none") {
      return {std::nullopt};
    }
    const auto own = environment("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
    const auto base = environment("OTEL_EXPORTER_OTLP_ENDPOINT");
    if (own.empty() && base.empty()) return {std::nullopt};
    const auto spoken = first_of(environment, {"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"});
    if (spoken.name != nullptr && !spoken.value.starts_with("http/")) {
      return failure{errc::invalid_argument,
                     std::string(spoken.name) + ": expected http/json, the only supported protocol, found " +
                         quote_bytes(spoken.value) +
                         "; name the collector's HTTP port with --otlp-endpoint, or set OTEL_TRACES_EXPORTER=none"};
    }
    if (!own.empty()) {
      REDLINE_TRY_ASSIGN(out.url, read_url("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", own, false));
    } else {
      REDLINE_TRY_ASSIGN(out.url, read_url("OTEL_EXPORTER_OTLP_ENDPOINT", base, true));
    }
  }
  const auto headers = first_of(environment, {"OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"});
  if (headers.name != nullptr) {
    REDLINE_TRY_ASSIGN(auto list, read_pairs(headers.name, headers.value));
    for (auto& [name, value] : list) out.headers.push_back({std::move(name), std::move(value)});
  }
  std::string name = environment("OTEL_SERVICE_NAME");
  REDLINE_TRY_ASSIGN(auto attributes, read_pairs("OTEL_RESOURCE_ATTRIBUTES", environment("OTEL_RESOURCE_ATTRIBUTES")));
  for (auto& [key, value] : attributes) {
    if (key != "service.name")
      out.resource.emplace_back(std::move(key), std::move(value));
    else if (name.empty())
      name = std::move(value);
  }
  out.resource.emplace_back("service.name", name.empty() ? service : name);
  return {std::move(out)};
}

}  // namespace redline::actors::cli
