#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/copy/document.hpp"

namespace redline::copy {

/// What a program may refer to: the units of each file. With more than one file every copy names its file.
struct program_shape {
  struct file {
    std::uint32_t lines = 0;
    std::uint32_t tokens = 0;
    bool operator==(const file&) const = default;
  };
  std::vector<file> files;
  bool line_spans = true;
  bool token_spans = false;
  bool anchors = false;  // a copy of lines also says how its first and its last line begin

  static constexpr std::size_t files_max = 64;
  [[nodiscard]] bool names_files() const { return files.size() > 1; }
  /// Units that a copy of this kind may name in a file, from 1; 0 where the kind is not allowed.
  [[nodiscard]] std::uint32_t count(std::uint32_t number, unit of) const;
  bool operator==(const program_shape&) const = default;
};

/// Ends a text.
inline constexpr std::string_view gen_end = "</gen>";

struct copy_op {
  std::uint32_t file = 1;
  unit of = unit::lines;
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  bool operator==(const copy_op&) const = default;
};

/// The five states of the decoder's machine (Liu, "Copy-as-Decode", 2026), and two where it stands still.
enum class program_phase : std::uint8_t {
  await_op,    // at an op boundary
  after_lt,    // which op
  copy_lines,  // inside of a copy, its numbers above all
  gen_body,    // free text
  close,       // the program's end tag
  span,        // a copy is complete: what it copies goes here, then await_op
  done,
};

/// Where in a program its writer is. A small value: copied freely.
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
  std::uint8_t matched = 0;  // characters of the step's literal; in gen_body: of gen_end
  copy_op op;                // as far as it is written
  std::uint64_t number = 0;  // as far as it is written

  [[nodiscard]] program_phase phase() const;
  bool operator==(const program_state&) const = default;
};

/// The grammar, one byte at a time:
///
///   program := op* '</program>'
///   op      := '<copy ' ['file="' k '" '] span '/>'  |  '<gen>' text '</gen>'
///   span    := 'lines="' i '-' j '"' [' first="' anchor '" last="' anchor '"']  |  'tokens="' i '-' j '"'
///
/// with 1 <= i <= j <= the file's units. An anchor is any bytes but quotes and control characters; it is a remark that
/// the meaning of a program does not depend on (see anchor_of). Numbers are decimal without leading zeros; no blanks
/// beside those written here. Text is any bytes; "</gen>" inside of it is written "<\/gen>", and "<\/gen>" again with
/// one backslash more (see escape_text).
class program_machine {
 public:
  explicit program_machine(program_shape shape) : shape_(std::move(shape)) {}

  /// False when a program cannot go on so; the state is then as before.
  [[nodiscard]] bool advance(program_state& s, char byte) const;
  /// The copy's span stands where it belongs; only in phase span.
  void resume(program_state& s) const { s = {}; }

  /// No peer's state can do harm: indices and numbers are within the shape.
  [[nodiscard]] bool is_valid(const program_state& s) const;
  /// What may come next, for people.
  [[nodiscard]] std::string wanted(const program_state& s) const;
  /// The rest of the word that a state is in the middle of; empty where there is a choice.
  [[nodiscard]] std::string_view word_left(const program_state& s) const;
  [[nodiscard]] const program_shape& shape() const { return shape_; }

 private:
  [[nodiscard]] bool has_units(std::uint32_t file) const;
  [[nodiscard]] bool file_can_begin_with(std::uint64_t number) const;
  [[nodiscard]] bool take_digit(program_state& s, char byte) const;

  program_shape shape_;
};

/// Bytes that anchors are made of.
[[nodiscard]] constexpr bool is_anchor_byte(char byte) {
  return byte != '"' && static_cast<unsigned char>(byte) >= 0x20;
}
/// What names a line: how it begins behind its leading blanks, up to the first byte that anchors have not, 24 bytes at
/// most; whole characters.
[[nodiscard]] std::string_view anchor_of(std::string_view line);

/// A text as it stands in a program: "<", n backslashes and "/gen>" get one backslash more.
[[nodiscard]] std::string escape_text(std::string_view text);

/// Follows a program byte by byte and says what it means.
class program_reader {
 public:
  enum class event : std::uint8_t { none, copy, end };

  explicit program_reader(program_shape shape) : machine_(std::move(shape)) {}

  /// nullopt where no program goes on with this byte. text: text of gen ops is appended as soon as it is certain.
  std::optional<event> feed(char byte, std::string& text);
  /// After `copy`: the program goes on.
  void resume() { machine_.resume(state_); }

  [[nodiscard]] const program_state& state() const { return state_; }
  [[nodiscard]] const program_machine& machine() const { return machine_; }

 private:
  program_machine machine_;
  program_state state_;
  // "<", then backslashes, then `tail_` characters of "/gen>": not yet known to be text.
  bool held_ = false;
  std::size_t backslashes_ = 0;
  std::size_t tail_ = 0;
};

}  // namespace redline::copy
