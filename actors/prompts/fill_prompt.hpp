#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/text/tokenizer.hpp"

/// Prompts for the middle of a text, in the order and with the tokens that the model's file names: prefix, suffix,
/// middle as most models learned it (Bavarian et al., "Efficient Training of Language Models to Fill in the Middle",
/// 2022), suffix first where they learned that.
namespace redline::actors {

/// Whether the model's file names tokens for it.
bool can_fill(const text::vocabulary& vocab);

/// The tokens around a gap, cut to fit into a context of which a quarter is left for the answer and up to a quarter is
/// for what comes after the gap. Of what stands before it the end is kept, from the start of a line on; see
/// `first_read`. tokenizer: of a model that can fill.
std::vector<token> lay_out_gap(const text::tokenizer& tokenizer, std::span<const token> before,
                               std::span<const token> after, std::uint32_t context_max);

/// As many tokens of what comes after a gap are read.
constexpr std::size_t after_count_max(std::uint32_t context_max) { return context_max / 4; }

/// Where reading begins when no more than `most` of `before` can be read: at the start of a line, and at the same one
/// until another eighth of the context stands before the gap, so that a key pressed does not move the whole cache.
std::size_t first_read(const text::tokenizer& tokenizer, std::span<const token> before, std::size_t most,
                       std::uint32_t context_max);

/// The token that separates files, the path and a line break.
void append_file_header(const text::tokenizer& tokenizer, std::string_view path, std::vector<token>& out);

/// A text with a gap, and others that belong to it.
struct fill_task {
  std::string before;
  std::string after;
  std::string path;  // of the text; may be empty
  struct file {
    std::string path;  // may be empty
    std::string text;
  };
  std::vector<file> context;  // those in front are left out first
};

/// What the model reads to fill the gap: context in front while half of what is left stays free, then the text. What a
/// text says is text, whatever token it spells.
///
/// Editors send a window of lines that moves with the cursor, and so begins elsewhere with each line. Of a long
/// `before` reading begins at a line of its first quarter that its content chooses (Muthitacharoen et al., "A
/// Low-bandwidth Network File System", 2001): the same one until it leaves the window, so that the next request goes on
/// from the cached pages of the last one.
std::vector<token> fill_prompt(const text::tokenizer& tokenizer, const fill_task& task, std::uint32_t context_max);

/// The same for several texts before one gap: what comes after it, and the other files, are made tokens once. What
/// cannot be in the context is not made tokens at all.
class gap_filler {
 public:
  /// task: whose `before` is not looked at; it outlives this, as the tokenizer does. piece_bytes_max: of one token.
  gap_filler(const text::tokenizer& tokenizer, const fill_task& task, std::uint32_t context_max,
             std::size_t piece_bytes_max);
  [[nodiscard]] std::vector<token> prompt(std::string_view before);

 private:
  /// Bytes that have at least so many tokens.
  [[nodiscard]] std::size_t bytes_of(std::size_t tokens) const;
  /// Of the context's last files, by number from the end; null: it has more tokens than the context.
  [[nodiscard]] const std::vector<token>* other(std::size_t number);

  const text::tokenizer& tokenizer_;
  const fill_task& task_;
  const std::uint32_t context_max_;
  const std::size_t piece_bytes_max_;
  std::vector<token> after_;
  std::vector<token> header_;               // of the text, where other files stand before it
  std::vector<std::vector<token>> others_;  // the last one first, as far as they were needed
};

}  // namespace redline::actors
