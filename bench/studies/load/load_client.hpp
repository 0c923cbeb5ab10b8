#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "actors/cli/server_address.hpp"
#include "bench/studies/common/names.hpp"
#include "bench/studies/load/load_plan.hpp"
#include "bench/studies/load/load_report.hpp"

namespace redline::studies {

/// Sends one request and reads its stream to the end. An error is in the row.
[[nodiscard]] load_row ask(const server_address& server, const http_question& question);

/// Asks a planned request, given by its index, after the earlier turns of its conversation.
using asker = std::function<load_row(std::size_t, const std::vector<past_turn>&)>;

/// Sends a level's requests, from as many clients at once as it has or each when it is due. Requests of a session
/// follow one another with time to think between them, and end after a failure. `ask_one` is called on separate
/// threads; this function fills in the row's level, method, item and tenant. `done_count` is for display.
load_record run_level(const load_level& level, const std::string& method, const std::vector<planned_request>& plan,
                      const asker& ask_one, std::atomic<std::size_t>& done_count);

}  // namespace redline::studies
