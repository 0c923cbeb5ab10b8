#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/draft/text_lookup.hpp"

namespace redline::text {

/// Follows JSON as it is written, and says how a string that copies a known text goes on: an edit tool's arguments are
/// mostly pieces of files that the conversation shows, but with line breaks and quotes escaped. The text is looked up
/// as it was before it was escaped.
class escaped_copy {
 public:
  /// known: may be null, then nothing is ever said.
  explicit escaped_copy(std::shared_ptr<const text_lookup> known) : known_(std::move(known)) { reset(); }

  /// More of the JSON text.
  void feed(std::string_view bytes);
  /// Another document begins.
  void reset();

  struct guess {
    std::string bytes;          // as JSON spells them; may end inside of what a token spells
    std::uint32_t matched = 0;  // bytes before them that agree: what speaks for it
  };
  /// What probably comes next, at most some `bytes_max`. Nothing outside of a string, and where no place is known.
  [[nodiscard]] std::optional<guess> ahead(std::size_t bytes_max) const;

 private:
  void feed(char byte);
  void take(std::string_view decoded);
  [[nodiscard]] bool in_text() const { return in_string_ && is_value_; }

  static constexpr std::size_t tail_max = 2 * text_lookup::matched_max;

  std::shared_ptr<const text_lookup> known_;
  bool in_string_ = false;
  bool is_value_ = false;  // not a member's name
  char before_ = 0;        // the last byte outside of strings but blanks
  std::string escape_;     // begun, without its backslash
  bool in_escape_ = false;
  std::string tail_;         // of the string so far, not escaped
  std::size_t written_ = 0;  // bytes of it
  std::uint32_t place_ = 0;  // in the known texts, of what comes next; 0: unknown
  std::uint32_t matched_ = 0;
  /// Where the last value that was copied begins: another one may be a new version of it. At first the last text: what
  /// was read last is perhaps what is written now.
  std::uint32_t begin_ = 0;
};

}  // namespace redline::text
