#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// The text of a configuration file, in TOML.
namespace redline::actors::cli {

inline constexpr std::size_t config_bytes_max = 64 * 1024;
inline constexpr std::size_t config_line_bytes_max = 4096;
inline constexpr std::size_t config_shown_bytes_max = 80;

/// What the file says, for messages with the line.
struct config_entry {
  std::size_t line = 0;  // from 1
  std::string text;      // of the line, without blanks around it
  std::vector<std::string> section;
  std::string key;                  // empty: the section is opened
  std::vector<std::string> values;  // one, but of an array

  /// "session.new.name".
  [[nodiscard]] std::string name() const;
};

/// In the order of the lines; or what is wrong with the first that is: "line 3: expected ...".
struct config_text {
  std::vector<config_entry> entries;
  std::optional<std::string> complaint;
};
/// Sizes and nesting are limited before the parser sees anything.
config_text read_config_text(std::string_view text);

/// A basic string with its quotes; well-formed UTF-8 is read back as it was.
std::string toml_string(const std::string& text);
/// As a number where it is read back as it was, else as a string.
std::string toml_scalar(const std::string& text);
std::string toml_array(const std::vector<std::string>& texts);

}  // namespace redline::actors::cli
