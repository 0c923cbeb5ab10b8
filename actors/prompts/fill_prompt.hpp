#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/text/tokenizer.hpp"

/// Prompts for filling in the middle of a text, in the order and with the tokens that the model's file names: prefix,
/// suffix, middle as most models learned it (Bavarian et al., "Efficient Training of Language Models to Fill in the
/// Middle", 2022), or suffix first where they learned that.
namespace redline::actors {

/// Whether the model's file names tokens for it.
bool can_fill(const text::vocabulary& vocab);

/// The tokens around a gap, cut to fit into a context of which a quarter is left for the answer and up to a quarter is
/// for what comes after the gap. Of the text before the gap the end is used, from the start of a line; see
/// `first_read`. tokenizer: of a model that can fill.
std::vector<token> lay_out_gap(const text::tokenizer& tokenizer, std::span<const token> before,
                               std::span<const token> after, std::uint32_t context_max);

/// The most tokens after a gap that are read.
constexpr std::size_t after_count_max(std::uint32_t context_max) { return context_max / 4; }

/// Where reading begins when at most `most` tokens of `before` can be read: at the start of a line. It stays there
/// until another eighth of the context precedes the gap, so that one keystroke does not shift the whole cached prefix.
std::size_t first_read(const text::tokenizer& tokenizer, std::span<const token> before, std::size_t most,
                       std::uint32_t context_max);

/// Appends the token that separates files, the path and a line break.
void append_file_header(const text::tokenizer& tokenizer, std::string_view path, std::vector<token>& out);

/// A text with a gap, and other files that belong to it.
struct fill_task {
  std::string before;
  std::string after;
  std::string path;  // path of the text; may be empty
  struct file {
    std::string path;  // may be empty
    std::string text;
  };
  std::vector<file> context;  // the first ones are left out first
};

/// What the model reads to fill the gap: other files in front while half of the remaining context stays free, then the
/// text. Contents are encoded as plain text, even where they contain a control token.
///
/// Editors send a window of lines that moves with the cursor, and so begins elsewhere with each line. Reading of a long
/// `before` begins at a line of its first quarter that is chosen by content (Muthitacharoen et al., "A Low-bandwidth
/// Network File System", 2001): the same one until it leaves the window, so that the next request continues from the
/// pages cached for the last one.
std::vector<token> fill_prompt(const text::tokenizer& tokenizer, const fill_task& task, std::uint32_t context_max);

/// The same for several texts before one gap: what comes after it, and the other files, are tokenized once. What cannot
/// fit into the context is not tokenized at all.
class gap_filler {
 public:
  /// task: its `before` is ignored; it outlives this object, as does the tokenizer. piece_bytes_max: for one token.
  gap_filler(const text::tokenizer& tokenizer, const fill_task& task, std::uint32_t context_max,
             std::size_t piece_bytes_max);
  [[nodiscard]] std::vector<token> prompt(std::string_view before);

 private:
  /// A number of bytes that always have at least so many tokens.
  [[nodiscard]] std::size_t bytes_of(std::size_t tokens) const;
  /// One of the other files, by number from the end; null if it has more tokens than the context.
  [[nodiscard]] const std::vector<token>* other(std::size_t number);

  const text::tokenizer& tokenizer_;
  const fill_task& task_;
  const std::uint32_t context_max_;
  const std::size_t piece_bytes_max_;
  std::vector<token> after_;
  std::vector<token> header_;               // header of the text, used where other files precede it
  std::vector<std::vector<token>> others_;  // the last one first, as far as they were needed
};

}  // namespace redline::actors
