#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/base/result.hpp"
#include "runtime/copy/program_machine.hpp"

namespace redline::copy {

struct gen_op {
  std::string text;  // unescaped
  bool operator==(const gen_op&) const = default;
};

/// The parts of a new file in order, made from old files. See program_machine for the notation.
using program = std::vector<std::variant<copy_op, gen_op>>;

/// The shape of programs over these files. token_spans requires documents with tokens.
[[nodiscard]] program_shape shape_of(std::span<const document> files, bool token_spans = false);

/// The program's text. Ranges are not checked.
[[nodiscard]] std::string print_program(const program& p, bool names_files);
/// The program's text with anchors; every span must be within its file.
[[nodiscard]] std::string print_anchored(const program& p, std::span<const document> files);

/// The anchors of a copy of lines: the starts of its first and last line.
struct anchor_pair {
  std::string first;
  std::string last;
  bool operator==(const anchor_pair&) const = default;
};
/// The anchors of the copied lines; empty for a copy of tokens.
[[nodiscard]] anchor_pair anchors_of(const copy_op& op, std::span<const document> files);

/// Inverse of print_program. A failure names the byte, what was expected and what was found. anchors: receives those of
/// each copy, in order, if the shape has them.
[[nodiscard]] result<program> parse_program(std::string_view bytes, const program_shape& shape,
                                            std::vector<anchor_pair>* anchors = nullptr);

/// Limit on the result, because a short program can copy a large file many times.
inline constexpr std::size_t resolved_bytes_max = std::size_t{256} << 20;

/// Makes the new file. Fails for a span outside its file and for a result of more than bytes_max.
[[nodiscard]] result<std::string> resolve(const program& p, std::span<const document> files,
                                          std::size_t bytes_max = resolved_bytes_max);

}  // namespace redline::copy
