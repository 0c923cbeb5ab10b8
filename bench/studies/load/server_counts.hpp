#pragma once

#include <optional>
#include <string_view>

#include "actors/cli/server_address.hpp"
#include "bench/studies/common/names.hpp"

namespace redline::studies {

/// The work of a Redline server's target models since they started.
struct server_counts {
  double passes = 0;
  double rows = 0;
  double busy_seconds = 0;  // time in passes

  server_counts operator-(const server_counts& before) const {
    return {passes - before.passes, rows - before.rows, busy_seconds - before.busy_seconds};
  }
  bool operator==(const server_counts&) const = default;
};

/// Parses the text of /metrics; nullopt where a count is missing, as with other servers.
[[nodiscard]] std::optional<server_counts> parse_server_counts(std::string_view metrics);
/// Returns nullopt where the server does not report the counts.
[[nodiscard]] std::optional<server_counts> ask_server_counts(const server_address& server);

}  // namespace redline::studies
