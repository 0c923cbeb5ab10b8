#pragma once

#include <memory>
#include <string_view>

#include "runtime/grammar/syntax/regex_dfa.hpp"

namespace redline::grammar {

/// The support for a name that a schema gives as a string's `format`.
enum class format_kind : std::uint8_t {
  known,        // its texts match `format_pattern`
  unsupported,  // a draft of JSON Schema defines it, but it is not supported here
  unheard_of,   // no draft defines it, so it asserts nothing
};
[[nodiscard]] format_kind kind_of_format(std::string_view name);
/// The names of the known ones, for error messages.
inline constexpr std::string_view known_formats =
    "date, time, date-time, duration, email, hostname, uuid, uri, uri-reference, iri, iri-reference, uri-template, "
    "json-pointer, relative-json-pointer, regex, ipv4 or ipv6";

/// A regular expression that matches all of a text of a known format. It accepts only texts of the format's standard,
/// but not all of them: README.md says which are left out.
[[nodiscard]] std::string_view format_pattern(std::string_view name);

/// The same as an automaton for the inside of a JSON string, made once per process.
[[nodiscard]] std::shared_ptr<const regex_dfa> format_texts(std::string_view name);

/// Whether a library writes this pattern along with the format. Such a pattern matches each text of the format, so its
/// look-around needs no support.
[[nodiscard]] bool is_pattern_of_format(std::string_view name, std::string_view pattern);

}  // namespace redline::grammar
