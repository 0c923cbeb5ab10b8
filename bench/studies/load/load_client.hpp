#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "actors/cli/server_address.hpp"
#include "bench/studies/common/names.hpp"
#include "bench/studies/load/load_plan.hpp"
#include "bench/studies/load/load_report.hpp"

namespace redline::studies {

/// Sends one request and reads its stream to the end. What goes wrong is in the row's error.
[[nodiscard]] load_row ask(const server_address& server, const http_question& question);

/// Asks a planned request (its index), after those of its conversation.
using asker = std::function<load_row(std::size_t, const std::vector<past_turn>&)>;

/// Sends a level's requests: from as many clients at once as it has, or each when it is due; those of a session one
/// after the other, with time to think between them, and none after one that failed. ask_one: called on threads of
/// their own; the row's level, method, item and tenant are filled in here. done_count: for display.
load_record run_level(const load_level& level, const std::string& method, const std::vector<planned_request>& plan,
                      const asker& ask_one, std::atomic<std::size_t>& done_count);

}  // namespace redline::studies
