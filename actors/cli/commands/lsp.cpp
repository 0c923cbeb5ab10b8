#include <unistd.h>

#include <chrono>
#include <utility>

#include "actors/cli/child_server.hpp"
#include "actors/cli/command.hpp"
#include "actors/cli/commands/commands.hpp"
#include "actors/cli/flags/command_line.hpp"
#include "actors/cli/flags/model_flags.hpp"
#include "actors/cli/lsp/stdio_loop.hpp"
#include "actors/cli/model_door.hpp"
#include "actors/cli/server_address.hpp"
#include "runtime/base/version.hpp"

namespace redline::actors::cli {
namespace {

// A server that ends sooner would probably end again and again.
constexpr std::chrono::seconds lives_at_least{60};
constexpr std::uint32_t starts_max = 5;

struct lsp_flags {
  model_flags models;
  std::string server = "http://127.0.0.1:8080";
  std::string api_key;
  std::uint32_t tokens_max = 64;
};

int run(const lsp_flags& f) {
  child_server own;
  lsp::language_server::options how{.version = version(), .server = f.server, .tokens_max = f.tokens_max};
  if (f.models.model.empty()) {
    const auto at = server_address::parse(f.server, f.api_key);
    if (!at) return report(at.error());
    return lsp::serve_editor(std::move(how), *at, STDIN_FILENO, STDOUT_FILENO);
  }
  // Launched before any thread starts. It loads while the editor is already served.
  if (const auto launched = own.launch(words_of(f.models), child_server::prompts::shared); !launched) {
    return report(launched.error());
  }
  how.server = "a private server";
  std::uint32_t starts = 1;
  bool is_first = true;
  auto started = std::chrono::steady_clock::now();
  const auto find = [&](const std::atomic<bool>& given_up) -> result<server_address> {
    if (!std::exchange(is_first, false)) {
      const auto now = std::chrono::steady_clock::now();
      starts = now - started > lives_at_least ? 1 : starts + 1;
      if (starts > starts_max) return failure{errc::not_ready, "it ended repeatedly"};
      started = now;
      REDLINE_TRY(own.launch(words_of(f.models), child_server::prompts::shared));
    }
    REDLINE_TRY_ASSIGN(const auto at, own.wait_until_ready(model_loading_max, &given_up));
    return server_address::parse(at.url, at.api_key);
  };
  const lsp::own_server server{.find = find,
                               .wait_for_end = [&](const std::atomic<bool>& given_up) { own.wait_for_end(given_up); }};
  return lsp::serve_editor(std::move(how), server, STDIN_FILENO, STDOUT_FILENO);
}

}  // namespace

void add_lsp(CLI::App& app, int& exit_code) {
  auto f = std::make_shared<lsp_flags>();
  const command c(app, "lsp",
                  "Run a language server on standard input and output, for completions and edits in an editor");
  const option server = c.add("--server", f->server, "The server: http://HOST:PORT or https://HOST");
  c.add("--api-key", f->api_key, "The server's API key");
  const option model =
      add_model_file_flag(c, f->models).require(false).describe("Start a private server for this model, a GGUF file");
  add_draft_file_flag(c, f->models);
  add_memory_flags(c, f->models);
  add_chat_template_flag(c, f->models.chat_template);
  c.add("--max-tokens", f->tokens_max, "Maximum number of tokens of a completion").range(1, 4096);
  c.on_run(exit_code, [f, server, model] {
    if (const auto chosen = choose_model_or_server(model, f->models.model, server, f->server); !chosen) {
      return report(chosen);
    }
    return run(*f);
  });
}

}  // namespace redline::actors::cli
