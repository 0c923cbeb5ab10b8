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

/// One entry of the file, with its line for messages.
struct config_entry {
  std::size_t line = 0;  // counts from 1
  std::string text;      // the line without surrounding whitespace
  std::vector<std::string> section;
  std::string key;                  // empty for the line that opens a section
  std::vector<std::string> values;  // one, or the elements of an array

  /// "session.new.name".
  [[nodiscard]] std::string name() const;
};

/// The entries in file order, or a complaint about the first error: "line 3: expected ...".
struct config_text {
  std::vector<config_entry> entries;
  std::optional<std::string> complaint;
};
/// Limits sizes and nesting before the parser reads the text.
config_text read_config_text(std::string_view text);

/// A basic string with its quotes. Valid UTF-8 parses back unchanged.
std::string toml_string(const std::string& text);
/// A number if it parses back unchanged, otherwise a string.
std::string toml_scalar(const std::string& text);
std::string toml_array(const std::vector<std::string>& texts);

}  // namespace redline::actors::cli
