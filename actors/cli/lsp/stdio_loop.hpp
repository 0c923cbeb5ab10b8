#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "actors/cli/lsp/language_server.hpp"
#include "actors/cli/server_address.hpp"
#include "runtime/base/result.hpp"

namespace redline::actors::cli::lsp {

/// Where the calls go, once the server has started. Runs on a thread of its own; ends soon once given_up is true.
using server_finder = std::function<result<server_address>(const std::atomic<bool>& given_up)>;

/// Serves the editor at these descriptors until it says goodbye or closes them; the process's exit code.
int serve_editor(language_server::options how, server_address at, int in, int out);
/// The same with a server that is starting.
int serve_editor(language_server::options how, const server_finder& find_server, int in, int out);

}  // namespace redline::actors::cli::lsp
