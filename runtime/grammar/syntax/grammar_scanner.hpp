#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/grammar/syntax/grammar_rules.hpp"

namespace redline::grammar {

/// What grammar readers share: a position in the text, the rules so far, and the first error.
class grammar_scanner {
 protected:
  static constexpr std::size_t depth_of_groups_max = 64;

  explicit grammar_scanner(std::string_view text) : text_(text) {}

  void refuse(const std::string& what) { refuse(what, line_); }
  void refuse(const std::string& what, std::size_t line);
  [[nodiscard]] char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  [[nodiscard]] bool is_over() const { return at_ >= text_.size(); }
  [[nodiscard]] bool looks_at(std::string_view word) const { return !is_over() && text_.substr(at_).starts_with(word); }
  [[nodiscard]] static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  /// The beginning of the rest of the line, for error messages.
  [[nodiscard]] std::string rest_of_line() const;
  /// Reads a number; 2^20 if it is larger.
  std::uint32_t read_number();
  /// Reads one character of UTF-8.
  char32_t read_plain();
  char32_t read_hex(int digits);
  /// Reads the rest of an escape: n, r, t, or x, u or U with digits, or a character of `themselves`.
  char32_t read_escaped(std::string_view themselves);
  /// Whether the bounds of a repetition are in order and not too large.
  [[nodiscard]] static bool are_bounds(std::uint32_t least, std::uint32_t most);

  /// The number of the rule with this name, which is added if there is none.
  std::uint32_t rule_of(const std::string& name);
  /// Begins the definition of a rule, whose right side follows. Returns nothing if it was already defined.
  std::optional<std::uint32_t> begin_rule(const std::string& name, std::size_t line);
  /// Returns the grammar. Fails unless all rules that are used, and `root`, are defined.
  result<grammar_rules> finish(std::string_view root);

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
  std::optional<failure> why_;
  std::vector<rule> rules_;

 private:
  std::unordered_map<std::string, std::uint32_t> by_name_;
};

}  // namespace redline::grammar
