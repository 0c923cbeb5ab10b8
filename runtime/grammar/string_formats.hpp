#pragma once

#include <memory>
#include <string_view>

#include "runtime/grammar/syntax/regex_dfa.hpp"

namespace redline::grammar {

/// What is known of a name that a schema gives as a string's `format`.
enum class format_kind : std::uint8_t {
  known,        // its texts are those of `format_pattern`
  unsupported,  // some draft of JSON Schema gives it a meaning, which is not supported here
  unheard_of,   // no draft does: it asserts nothing
};
[[nodiscard]] format_kind kind_of_format(std::string_view name);

/// The texts of a known format as an expression, which matches all of a text. Those of the format's standard and no
/// others, but not every one of them: README.md says which are left out.
[[nodiscard]] std::string_view format_pattern(std::string_view name);

/// The same as a table for the inside of a JSON string; made once in a process.
[[nodiscard]] std::shared_ptr<const regex_dfa> format_texts(std::string_view name);

/// A library writes this pattern beside the format, and each text of the format matches it: what it looks around for is
/// so in all of them.
[[nodiscard]] bool is_pattern_of_format(std::string_view name, std::string_view pattern);

}  // namespace redline::grammar
