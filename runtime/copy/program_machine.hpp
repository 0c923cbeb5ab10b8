#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/copy/document.hpp"

namespace redline::copy {

/// What a program may refer to: the number of units in each file. With several files, every copy names its file.
struct program_shape {
  struct file {
    std::uint32_t lines = 0;
    std::uint32_t tokens = 0;
    bool operator==(const file&) const = default;
  };
  std::vector<file> files;
  bool line_spans = true;
  bool token_spans = false;
  bool anchors = false;  // a copy of lines also quotes the starts of its first and last line

  static constexpr std::size_t files_max = 64;
  [[nodiscard]] bool names_files() const { return files.size() > 1; }
  /// Number of units of this kind in file `number` (from 1); 0 if copies may not use the kind.
  [[nodiscard]] std::uint32_t count(std::uint32_t number, unit of) const;
  bool operator==(const program_shape&) const = default;
};

/// The end tag of a text.
inline constexpr std::string_view gen_end = "</gen>";

struct copy_op {
  std::uint32_t file = 1;
  unit of = unit::lines;
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  bool operator==(const copy_op&) const = default;
};

/// A position in a program, as a small value. The steps refine the five states of the decoder in Liu, "Copy-as-Decode"
/// (2026); no byte may follow at the steps span and done.
struct program_state {
  enum class step : std::uint8_t {
    await_op,
    after_lt,
    copy_word,
    file_word,
    file_number,
    file_end,
    unit_choice,
    lines_word,
    tokens_word,
    first_number,
    last_number,
    copy_end,
    gen_word,
    gen_body,
    close_word,
    span,
    done,
    first_anchor_word,
    first_anchor,
    last_anchor_word,
    last_anchor,
    last_
  };
  step at = step::await_op;
  std::uint8_t matched = 0;  // characters of the step's literal; for gen_body, of gen_end
  copy_op op;                // the part written so far
  std::uint64_t number = 0;  // the digits written so far

  bool operator==(const program_state&) const = default;
};

/// The grammar, one byte at a time:
///
///   program := op* '</program>'
///   op      := '<copy ' ['file="' k '" '] span '/>'  |  '<gen>' text '</gen>'
///   span    := 'lines="' i '-' j '"' [' first="' anchor '" last="' anchor '"']  |  'tokens="' i '-' j '"'
///
/// with 1 <= i <= j <= the file's units. An anchor is any bytes except quotes and control characters; the result of a
/// program does not depend on anchors (see anchor_of). Numbers are decimal without leading zeros, and only the spaces
/// shown are allowed. Text is any bytes; "</gen>" in it is escaped as "<\/gen>", and "<\/gen>" again with one more
/// backslash (see escape_text).
class program_machine {
 public:
  explicit program_machine(program_shape shape) : shape_(std::move(shape)) {}

  /// Consumes a byte. Returns false if the grammar does not allow it; the state is then unchanged.
  [[nodiscard]] bool advance(program_state& s, char byte) const;
  /// Continues after the copied span was inserted; requires step span.
  void resume(program_state& s) const { s = {}; }

  /// Whether all indices and numbers of the state, which may come from a peer, are within the shape.
  [[nodiscard]] bool is_valid(const program_state& s) const;
  /// What may come next, for error messages.
  [[nodiscard]] std::string wanted(const program_state& s) const;
  /// The rest of the fixed word that must follow; empty if there is a choice.
  [[nodiscard]] std::string_view word_left(const program_state& s) const;
  [[nodiscard]] const program_shape& shape() const { return shape_; }

 private:
  [[nodiscard]] bool has_units(std::uint32_t file) const;
  [[nodiscard]] bool file_can_begin_with(std::uint64_t number) const;
  [[nodiscard]] bool take_digit(program_state& s, char byte) const;

  program_shape shape_;
};

/// Whether an anchor may contain the byte.
[[nodiscard]] constexpr bool is_anchor_byte(char byte) {
  return byte != '"' && static_cast<unsigned char>(byte) >= 0x20;
}
/// The anchor of a line: its start after leading spaces and tabs, up to the first byte not allowed in anchors, at most
/// 24 bytes of whole characters.
[[nodiscard]] std::string_view anchor_of(std::string_view line);

/// Escapes a text: "<", n backslashes and "/gen>" get one more backslash.
[[nodiscard]] std::string escape_text(std::string_view text);

/// Parses a program byte by byte.
class program_reader {
 public:
  enum class event : std::uint8_t { none, copy, end };

  explicit program_reader(program_shape shape) : machine_(std::move(shape)) {}

  /// nullopt if the grammar does not allow the byte. text: receives the text of gen ops as soon as it is certain.
  std::optional<event> feed(char byte, std::string& text);
  /// Continues with the next op after event `copy`.
  void resume() { machine_.resume(state_); }

  [[nodiscard]] const program_state& state() const { return state_; }
  [[nodiscard]] const program_machine& machine() const { return machine_; }

 private:
  program_machine machine_;
  program_state state_;
  // A possible end tag or escape: "<", then backslashes, then `tail_` characters of "/gen>".
  bool held_ = false;
  std::size_t backslashes_ = 0;
  std::size_t tail_ = 0;
};

}  // namespace redline::copy
