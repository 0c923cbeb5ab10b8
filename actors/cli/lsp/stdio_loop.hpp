#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "actors/cli/lsp/language_server.hpp"
#include "actors/cli/server_address.hpp"
#include "runtime/base/result.hpp"

namespace redline::actors::cli::lsp {

/// A private server for this editor, which is started again when it ends. Both functions run on one separate thread and
/// return soon after given_up becomes true.
struct own_server {
  /// Waits until the server has started and returns its address. A failure is final.
  std::function<result<server_address>(const std::atomic<bool>& given_up)> find;
  std::function<void(const std::atomic<bool>& given_up)> wait_for_end;
};

/// Serves the editor on these descriptors until it exits or closes them. Returns the exit code of the process.
int serve_editor(language_server::options how, server_address at, int in, int out);
/// The same with a server that is starting.
int serve_editor(language_server::options how, const own_server& server, int in, int out);

}  // namespace redline::actors::cli::lsp
