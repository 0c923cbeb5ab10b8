#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace redline::jinja {

struct token {
  enum class kind {
    data,         // text to print unchanged
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

/// Splits a template into tokens, the last of which is `end`. Comments are dropped, raw blocks are data, and the
/// whitespace rules are applied: `-` and `+`, trim_blocks (removes the newline after a block tag), lstrip_blocks
/// (removes whitespace before a block tag on its line), and the removal of one newline at the end of the source. Throws
/// error.
std::vector<token> tokenize(std::string_view source);

}  // namespace redline::jinja
