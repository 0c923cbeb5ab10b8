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

/// Sends a level's requests: from as many clients at once as it has, or each when it is due. ask_one: gets the index of
/// a planned request, on a thread of its own; its row's level, method and item are filled in here. done_count: for
/// display.
load_record run_level(const load_level& level, const std::string& method, const std::vector<planned_request>& plan,
                      const std::function<load_row(std::size_t)>& ask_one, std::atomic<std::size_t>& done_count);

}  // namespace redline::studies
