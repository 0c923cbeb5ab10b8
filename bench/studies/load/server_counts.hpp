#pragma once

#include <optional>
#include <string_view>

#include "actors/cli/server_address.hpp"
#include "bench/studies/common/names.hpp"

namespace redline::studies {

/// What a Redline server's target models have done since they started.
struct server_counts {
  double passes = 0;
  double rows = 0;
  double busy_seconds = 0;  // in passes

  server_counts operator-(const server_counts& before) const {
    return {passes - before.passes, rows - before.rows, busy_seconds - before.busy_seconds};
  }
  bool operator==(const server_counts&) const = default;
};

/// From the text of /metrics; nullopt where a count is missing, as at other servers.
[[nodiscard]] std::optional<server_counts> parse_server_counts(std::string_view metrics);
/// nullopt where the server does not tell.
[[nodiscard]] std::optional<server_counts> ask_server_counts(const server_address& server);

}  // namespace redline::studies
