#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "actors/cli/lsp/language_server.hpp"
#include "actors/cli/server_address.hpp"
#include "runtime/base/result.hpp"

namespace redline::actors::cli::lsp {

/// A server that is started for this editor, and again when it has ended. Both run on one thread of their own, and
/// return soon once given_up is true.
struct own_server {
  /// Where the calls go, once it has started. A failure is the last word.
  std::function<result<server_address>(const std::atomic<bool>& given_up)> find;
  std::function<void(const std::atomic<bool>& given_up)> wait_for_end;
};

/// Serves the editor at these descriptors until it says goodbye or closes them; the process's exit code.
int serve_editor(language_server::options how, server_address at, int in, int out);
/// The same with a server that is starting.
int serve_editor(language_server::options how, const own_server& server, int in, int out);

}  // namespace redline::actors::cli::lsp
