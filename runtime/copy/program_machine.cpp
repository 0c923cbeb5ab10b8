#include "runtime/copy/program_machine.hpp"

#include <algorithm>
#include <string_view>

#include "runtime/base/assert.hpp"

namespace redline::copy {
namespace {

using step = program_state::step;

/// The fixed word of a step that has one, and the next step.
struct literal {
  std::string_view text;
  step then;
};

std::optional<literal> find_literal(step at, bool names_files) {
  switch (at) {
    case step::await_op:
      return literal{"<", step::after_lt};
    case step::copy_word:
      return literal{"opy ", names_files ? step::file_word : step::unit_choice};
    case step::file_word:
      return literal{"file=\"", step::file_number};
    case step::file_end:
      return literal{" ", step::unit_choice};
    case step::lines_word:
      return literal{"ines=\"", step::first_number};
    case step::tokens_word:
      return literal{"okens=\"", step::first_number};
    case step::copy_end:
      return literal{"/>", step::span};
    case step::gen_word:
      return literal{"en>", step::gen_body};
    case step::close_word:
      return literal{"program>", step::done};
    case step::first_anchor_word:
      return literal{" first=\"", step::first_anchor};
    case step::last_anchor_word:
      return literal{" last=\"", step::last_anchor};
    default:
      return std::nullopt;
  }
}

bool is_number(step at) { return at == step::file_number || at == step::first_number || at == step::last_number; }

/// Whether some number in [low, high] begins with these digits.
bool can_begin(std::uint64_t number, std::uint64_t low, std::uint64_t high) {
  for (std::uint64_t scale = 1; number * scale <= high; scale *= 10) {
    if (number * scale + (scale - 1) >= low) return true;
  }
  return false;
}

}  // namespace

std::uint32_t program_shape::count(std::uint32_t number, unit of) const {
  if (number < 1 || number > files.size()) return 0;
  const auto& f = files[number - 1];
  if (of == unit::lines) return line_spans ? f.lines : 0;
  return token_spans ? f.tokens : 0;
}

bool program_machine::has_units(std::uint32_t file) const {
  return shape_.count(file, unit::lines) > 0 || shape_.count(file, unit::tokens) > 0;
}

bool program_machine::file_can_begin_with(std::uint64_t number) const {
  for (std::uint32_t k = 1; k <= shape_.files.size(); ++k) {
    if (has_units(k) && can_begin(number, k, k)) return true;
  }
  return false;
}

bool program_machine::take_digit(program_state& s, char byte) const {
  if (byte < '0' || byte > '9') return false;
  const std::uint64_t number = s.number * 10 + static_cast<std::uint64_t>(byte - '0');
  if (number == 0) return false;
  const std::uint64_t units = shape_.count(s.op.file, s.op.of);
  const bool fits = s.at == step::file_number    ? file_can_begin_with(number)
                    : s.at == step::first_number ? can_begin(number, 1, units)
                                                 : can_begin(number, s.op.first, units);
  if (fits) s.number = number;
  return fits;
}

bool program_machine::advance(program_state& s, char byte) const {
  if (const auto word = find_literal(s.at, shape_.names_files())) {
    if (byte != word->text[s.matched]) return false;
    if (++s.matched == word->text.size()) {
      s.at = word->then;
      s.matched = 0;
    }
    return true;
  }
  if (is_number(s.at)) {
    if (take_digit(s, byte)) return true;
    const std::uint32_t units = shape_.count(s.op.file, s.op.of);
    const auto number = static_cast<std::uint32_t>(s.number);
    if (s.at == step::file_number && byte == '"' && has_units(number)) {
      s.op.file = number;
      s.at = step::file_end;
    } else if (s.at == step::first_number && byte == '-' && number >= 1 && number <= units) {
      s.op.first = number;
      s.at = step::last_number;
    } else if (s.at == step::last_number && byte == '"' && number >= s.op.first && number <= units) {
      s.op.last = number;
      s.at = shape_.anchors && s.op.of == unit::lines ? step::first_anchor_word : step::copy_end;
    } else {
      return false;
    }
    s.number = 0;
    return true;
  }
  switch (s.at) {
    case step::after_lt: {
      const auto any = [&] {
        for (std::uint32_t k = 1; k <= shape_.files.size(); ++k) {
          if (has_units(k)) return true;
        }
        return false;
      };
      if (byte == 'g')
        s.at = step::gen_word;
      else if (byte == '/')
        s.at = step::close_word;
      else if (byte == 'c' && any())
        s = {.at = step::copy_word};
      else
        return false;
      return true;
    }
    case step::unit_choice:
      if (byte == 'l' && shape_.count(s.op.file, unit::lines) > 0) {
        s.op.of = unit::lines;
        s.at = step::lines_word;
      } else if (byte == 't' && shape_.count(s.op.file, unit::tokens) > 0) {
        s.op.of = unit::tokens;
        s.at = step::tokens_word;
      } else {
        return false;
      }
      return true;
    case step::gen_body:
      if (byte == gen_end[s.matched])
        ++s.matched;
      else
        s.matched = byte == '<' ? 1 : 0;
      if (s.matched == gen_end.size()) s = {};
      return true;
    case step::first_anchor:
    case step::last_anchor:
      if (byte == '"') s.at = s.at == step::first_anchor ? step::last_anchor_word : step::copy_end;
      return byte == '"' || is_anchor_byte(byte);
    default:
      return false;  // span, done
  }
}

std::string_view program_machine::word_left(const program_state& s) const {
  const auto word = find_literal(s.at, shape_.names_files());
  return word ? word->text.substr(s.matched) : std::string_view{};
}

bool program_machine::is_valid(const program_state& s) const {
  if (s.at >= step::last_ || s.op.of >= unit::last_) return false;
  const auto word = find_literal(s.at, shape_.names_files());
  const std::size_t matched_end = word ? word->text.size() : s.at == step::gen_body ? gen_end.size() : 1;
  if (s.matched >= matched_end) return false;
  if (s.op.file < 1 || (s.op.file > 1 && s.op.file > shape_.files.size())) return false;
  const std::uint32_t units = shape_.count(s.op.file, s.op.of);
  const bool numbered =
      s.op.first <= units && s.op.last <= units && s.number <= std::max<std::uint64_t>(units, program_shape::files_max);
  const bool anchored = s.at >= step::first_anchor_word;
  if (anchored && !shape_.anchors) return false;
  if (s.at == step::last_number || s.at == step::copy_end || s.at == step::span || anchored)
    return numbered && s.op.first >= 1;
  return numbered;
}

std::string program_machine::wanted(const program_state& s) const {
  if (const auto word = word_left(s); !word.empty()) return "'" + std::string(word) + "'";
  const std::string units = std::to_string(shape_.count(s.op.file, s.op.of));
  switch (s.at) {
    case step::after_lt:
      return "'copy ', 'gen>' or '/program>'";
    case step::file_number:
      return "the number of a file that is not empty, from 1 to " + std::to_string(shape_.files.size());
    case step::unit_choice:
      return "lines or tokens, if spans may use the unit and the file has any";
    case step::first_number:
      return "a number from 1 to " + units;
    case step::last_number:
      return "a number from " + std::to_string(s.op.first) + " to " + units;
    case step::gen_body:
      return "'</gen>'";
    case step::first_anchor:
    case step::last_anchor:
      return "the start of the line, without quotes and control characters";
    default:
      return "nothing more";
  }
}

std::string_view anchor_of(std::string_view line) {
  constexpr std::size_t bytes_max = 24;
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  line = line.substr(0, bytes_max + 1);  // a line may be megabytes long
  const auto end = std::find_if_not(line.begin(), line.end(), is_anchor_byte);
  line = line.substr(0, static_cast<std::size_t>(end - line.begin()));
  if (line.size() <= bytes_max) return line;
  std::size_t size = bytes_max;
  while (size > 0 && (static_cast<unsigned char>(line[size]) & 0xc0) == 0x80) --size;
  return line.substr(0, size);
}

std::string escape_text(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    out += text[i];
    if (text[i] != '<') continue;
    const std::size_t end = std::min(text.find_first_not_of('\\', i + 1), text.size());
    if (text.substr(end).starts_with(gen_end.substr(1))) out += '\\';
  }
  return out;
}

std::optional<program_reader::event> program_reader::feed(char byte, std::string& text) {
  const bool in_body = state_.at == step::gen_body;
  if (!machine_.advance(state_, byte)) return std::nullopt;
  if (!in_body) {
    if (state_.at == step::span) return event::copy;
    return state_.at == step::done ? event::end : event::none;
  }
  constexpr std::string_view tail = gen_end.substr(1);
  const auto release = [&](std::size_t backslashes) {
    text += '<';
    text.append(backslashes, '\\');
    text += tail.substr(0, tail_);
    held_ = false;
  };
  if (held_ && tail_ == 0 && byte == '\\') {
    ++backslashes_;
    return event::none;
  }
  if (held_ && byte == tail[tail_]) {
    if (++tail_ < tail.size()) return event::none;
    if (backslashes_ == 0)
      held_ = false;  // the end tag
    else
      release(backslashes_ - 1);
    return event::none;
  }
  if (held_) release(backslashes_);
  if (byte == '<') {
    held_ = true;
    backslashes_ = tail_ = 0;
  } else {
    text += byte;
  }
  return event::none;
}

}  // namespace redline::copy
