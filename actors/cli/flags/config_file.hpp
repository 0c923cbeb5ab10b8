#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "actors/cli/flags/config_text.hpp"

namespace CLI {
class App;
}

namespace redline::actors::cli {

/// The environment variable of an option: REDLINE_KV_MIB for "kv-mib".
std::string environment_name(std::string_view option);

/// Reads --config and explains what the command line parser says about it.
class config_file {
 public:
  /// `app` reads its configuration through this object, which must outlive it.
  void attach(CLI::App& app);
  /// The "did you mean" hint for a key that the section's command does not have; empty if no key is near.
  using suggester = std::function<std::string(const std::vector<std::string>& section, const std::string& key)>;
  /// "FILE:LINE: KEY = VALUE: expected ..." or "REDLINE_KEY in the environment: expected ..." if the parser's complaint
  /// `what` is about the file or a variable; nullopt if it is about the command line.
  [[nodiscard]] std::optional<std::string> explain(const std::string& what, std::span<char* const> arguments,
                                                   const suggester& did_you_mean) const;
  /// "FILE:LINE" of the line that sets this option; only FILE if there is none.
  [[nodiscard]] std::string where(const std::string& section, const std::string& key) const;

 private:
  [[nodiscard]] std::string path() const;
  [[nodiscard]] std::string place(const config_entry& entry) const;

  std::shared_ptr<config_text> text_ = std::make_shared<config_text>();
  CLI::App* app_ = nullptr;
};

}  // namespace redline::actors::cli
