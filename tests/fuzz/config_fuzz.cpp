// Any bytes as a configuration file are accepted, or refused with a message that names a line; no other exception is
// thrown.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "actors/cli/flags/config_file.hpp"
#include "tests/fuzz/driver.hpp"

using namespace redline;

std::vector<std::string> fuzz::seeds() {
  return {
      "# a comment\nlog-level = \"debug\"\n[serve]\nmodel = \"a.gguf\"\nport = 80\nkeys = [\"a\", 'b']\ninsecure = "
      "true\n",
      "[serve]\r\nport=7\r\n\r\n[session.new]\r\nname = \"x\\ty\"\r\n",
      "serve.port = 0x10\n[serve]\nkeys = [\n  \"a\",\n  \"b\"\n]\n; other\n",
      "[a.b.c.d]\ne = 1\n[[serve]]\n\"port\" = \"1\" # one\n",
      "[serve]\nport = many\nmodel = \"unclosed\n",
      "[session]\n[session.new]\nname = \"\"\"many\nlines\"\"\"\n++ = 1\n",
  };
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  CLI::App app("", "redline");
  std::string level, model, name;
  std::vector<std::string> keys;
  int port = 0;
  bool insecure = false;
  app.add_option("--log-level", level);
  app.set_config("--config", "", "", false);
  app.allow_config_extras(CLI::config_extras_mode::error);
  CLI::App* serve = app.add_subcommand("serve");
  serve->add_option("--model", model);
  serve->add_option("--port", port)->check(CLI::Range(0, 65535));
  serve->add_option("--keys", keys);
  serve->add_flag("--insecure", insecure);
  app.add_subcommand("session")->add_subcommand("new")->add_option("--name", name);
  actors::cli::config_file config;
  config.attach(app);
  std::istringstream input(text);
  try {
    app.parse_from_stream(input);
    if (port < 0 || port > 65535) std::abort();
  } catch (const CLI::Error& e) {
    const auto why = config.explain(e.what(), {}, [](const auto&, const std::string&) { return std::string(); });
    if (why && why->empty()) std::abort();
  }
  const auto read = actors::cli::read_config_text(text);
  const auto count = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) + 1;
  for (const auto& e : read.entries) {
    if (e.line == 0 || e.line > count) std::abort();
  }
  if (read.complaint && read.complaint->find("expected") == std::string::npos) std::abort();
  return 0;
}
