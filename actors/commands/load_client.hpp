#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "actors/commands/load_plan.hpp"
#include "actors/commands/load_report.hpp"
#include "transport/http_client.hpp"

namespace redline::actors::commands {

/// Where the requests go.
struct load_server {
  transport::http_url url;  // of the API's root; target without a final slash
  std::vector<transport::http_header> headers;

  static result<load_server> parse(const std::string& url, const std::string& api_key);
};

/// Sends one request and reads its stream to the end. What goes wrong is in the row's error.
[[nodiscard]] load_row ask(const load_server& server, const http_question& question);

/// Sends a level's requests: from as many clients at once as it has, or each when it is due. ask_one: gets the index of
/// a planned request, on a thread of its own; its row's level, method and item are filled in here. done_count: for
/// display.
load_record run_level(const load_level& level, const std::string& method, const std::vector<planned_request>& plan,
                      const std::function<load_row(std::size_t)>& ask_one, std::atomic<std::size_t>& done_count);

}  // namespace redline::actors::commands
