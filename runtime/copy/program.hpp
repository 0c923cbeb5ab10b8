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
  std::string text;  // without escapes
  bool operator==(const gen_op&) const = default;
};

/// How to make a new file out of old ones: what its parts are, in order. See program_machine for how it is written.
using program = std::vector<std::variant<copy_op, gen_op>>;

/// What programs over these files may name. token_spans: the documents know their tokens.
[[nodiscard]] program_shape shape_of(std::span<const document> files, bool token_spans = false);

/// In the grammar's bytes; ranges are not looked at.
[[nodiscard]] std::string print_program(const program& p, bool names_files);
/// The same with anchors; every span is inside of its file.
[[nodiscard]] std::string print_anchored(const program& p, std::span<const document> files);

/// What a copy says of its first and last line.
struct anchor_pair {
  std::string first;
  std::string last;
  bool operator==(const anchor_pair&) const = default;
};
/// What a right program would say; nothing of a copy of tokens.
[[nodiscard]] anchor_pair anchors_of(const copy_op& op, std::span<const document> files);

/// Undoes print_program; a failure names the byte, what was wanted and what was found. anchors: what each copy says, in
/// order, when the shape has them.
[[nodiscard]] result<program> parse_program(std::string_view bytes, const program_shape& shape,
                                            std::vector<anchor_pair>* anchors = nullptr);

/// A short program can ask for very many bytes.
inline constexpr std::size_t resolved_bytes_max = std::size_t{256} << 20;

/// The new file. Fails for a span outside of its file, and beyond `bytes_max`.
[[nodiscard]] result<std::string> resolve(const program& p, std::span<const document> files,
                                          std::size_t bytes_max = resolved_bytes_max);

}  // namespace redline::copy
