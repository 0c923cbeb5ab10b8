#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace redline::jinja {

struct token {
  enum class kind {
    data,         // text to print as it stands
    block_begin,  // {%
    block_end,
    print_begin,  // {{
    print_end,
    name,
    string,  // text is unescaped
    integer,
    real,
    symbol,  // an operator or bracket
    end,
  };
  kind type = kind::end;
  std::string text;
  std::uint32_t line = 0;
};

/// Splits a template into tokens, the last of which is `end`. Comments are gone, raw blocks are data, and the rules of
/// whitespace are applied: `-` and `+`, trim_blocks (the newline after a block tag goes), lstrip_blocks (blanks before
/// a block tag on its line go), and one newline at the end of the source goes. Throws error.
std::vector<token> tokenize(std::string_view source);

}  // namespace redline::jinja
