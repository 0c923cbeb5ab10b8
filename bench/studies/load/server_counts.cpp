#include "bench/studies/load/server_counts.hpp"

#include <cstdlib>
#include <string>

namespace redline::studies {
namespace {

/// The value of a series without labels.
std::optional<double> value_of(std::string_view metrics, std::string_view name) {
  for (std::size_t at = 0; at < metrics.size();) {
    const std::size_t end = std::min(metrics.find('\n', at), metrics.size());
    const std::string_view line = metrics.substr(at, end - at);
    at = end + 1;
    if (line.size() <= name.size() || !line.starts_with(name) || line[name.size()] != ' ') continue;
    return std::strtod(std::string(line.substr(name.size() + 1)).c_str(), nullptr);
  }
  return std::nullopt;
}

}  // namespace

std::optional<server_counts> parse_server_counts(std::string_view metrics) {
  const auto passes = value_of(metrics, "redline_steps_total");
  const auto rows = value_of(metrics, "redline_rows_total");
  const auto busy = value_of(metrics, "redline_step_seconds_total");
  if (!passes || !rows || !busy) return std::nullopt;
  return server_counts{*passes, *rows, *busy};
}

std::optional<server_counts> ask_server_counts(const server_address& server) {
  auto where = server.url;
  where.target += "/metrics";
  const auto answer = transport::http_get(where, server.headers);
  if (!answer || answer->status != 200) return std::nullopt;
  return parse_server_counts(answer->body);
}

}  // namespace redline::studies
