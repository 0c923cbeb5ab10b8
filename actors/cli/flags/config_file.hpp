#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace redline::actors::cli {

inline constexpr std::size_t config_line_bytes_max = 4096;

/// What the file given by --config says, with line numbers for messages.
struct config_entry {
  std::size_t line = 0;  // from 1
  std::string section;   // empty before the first
  std::string key;       // empty: the line opens the section
  std::string value;
};

/// The file's lines, or the first that is wrong: "line 3: expected ...". The parser's time grows with the square of the
/// nesting and its memory faster, so size and nesting are limited before it sees anything.
struct config_lines {
  std::vector<config_entry> entries;
  std::optional<std::string> complaint;
};
config_lines read_config_lines(const std::string& text);

/// The variable of the environment that gives an option its value: REDLINE_KV_MIB for "kv-mib".
std::string environment_name(std::string_view option);

/// Reads --config and explains what the command line parser says about it.
class config_file {
 public:
  /// `app` reads its configuration through this object, which must outlive it.
  void attach(CLI::App& app);
  /// What "did you mean" says of a key that no option of the section's command has; empty: nothing is near.
  using suggester = std::function<std::string(const std::string& section, const std::string& key)>;
  /// "FILE:LINE: key = value: expected ..." or "REDLINE_KEY in the environment: expected ..." when the parser's
  /// complaint `what` is about the file or a variable; nullopt when it is about the command line.
  [[nodiscard]] std::optional<std::string> explain(const std::string& what, std::span<char* const> arguments,
                                                   const suggester& did_you_mean) const;
  /// "FILE:LINE" of the last line that gives this option a value; only FILE when there is none.
  [[nodiscard]] std::string where(const std::string& section, const std::string& key) const;

 private:
  [[nodiscard]] std::string place(const config_entry& entry) const;

  std::shared_ptr<config_lines> lines_ = std::make_shared<config_lines>();
  CLI::App* app_ = nullptr;
};

}  // namespace redline::actors::cli
