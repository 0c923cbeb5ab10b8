#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace redline::jinja {

/// Python's string functions on UTF-8, as the template engine needs them. Positions and lengths count code points. A
/// byte that is not valid UTF-8 counts as one code point and is preserved.

bool is_python_space(char32_t code);
char32_t to_upper(char32_t code);
char32_t to_lower(char32_t code);
bool is_cased(char32_t code);
/// \w of Python's regular expressions: letters, numbers and the underscore.
bool is_word_character(char32_t code);

std::string upper(std::string_view text);
std::string lower(std::string_view text);
std::string capitalize(std::string_view text);
/// str.title(): a letter after a letter becomes lower case, any other upper case.
std::string title(std::string_view text);

enum class strip_side { left, right, both };
/// Strips whitespace, or the code points of `characters` if it is not null.
std::string_view strip(std::string_view text, strip_side side, const std::string_view* characters = nullptr);
/// str.splitlines(): also splits at \r, \v, \f, \x1c-\x1e, U+0085, U+2028 and U+2029.
std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends = false);

/// Python's repr(float): the shortest digits that read back as the same number.
std::string python_float(double number);
/// Python's repr(str), in quotes.
std::string python_quoted(std::string_view text);
/// A JSON string in quotes, as json.dumps writes it.
std::string json_quoted(std::string_view text, bool ascii_only);

}  // namespace redline::jinja
