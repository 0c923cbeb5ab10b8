#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redline::actors::cli {

/// A basic string with its quotes: every byte sequence can be read again.
std::string toml_string(const std::string& text);
/// As a number where it is written like one, else as a string.
std::string toml_scalar(const std::string& text);
std::string toml_array(const std::vector<std::string>& texts);

/// What stands right of a '=': a string, or an array of strings, numbers and truth values on one line, and perhaps a
/// comment. nullopt for anything else, and what is no TOML.
std::optional<std::vector<std::string>> read_toml_value(std::string_view text);

}  // namespace redline::actors::cli
