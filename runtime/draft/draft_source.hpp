#pragma once

#include <cstdint>
#include <span>

#include "runtime/draft/source.hpp"

namespace redline::draft {

/// How far a source's drafts go before those of others.
enum class standing : std::uint8_t {
  binding,  // known to be the answer, or a span that the model is to be asked about: verified whatever others say
  form,     // what a grammar and usage leave: no method that is asked for by name needs its model for it
  text,     // copied from a text
};

/// Makes drafts of one answer from one kind of knowledge. A new source is a class of these four functions, its row in
/// `source`, and a line where an answer's book is filled (`actors/serving/answer_sources`). Holds nothing of another
/// tenant's answers.
class draft_source {
 public:
  virtual ~draft_source() = default;

  [[nodiscard]] virtual standing stands() const { return standing::text; }
  /// The log goes on with these tokens; of the first `prompt_count` tokens of the log it is told that they are the
  /// prompt.
  virtual void append(std::span<const token> committed, bool is_prompt) = 0;
  /// Tokens [at, at + count) leave the log, and those after them move up.
  virtual void drop(std::uint32_t at, std::uint32_t count) = 0;
  /// Works on what `append` and `drop` left to do, at most `tokens_max` tokens of it. True: there is more, and `look`
  /// finds nothing until it is done.
  virtual bool catch_up(std::uint32_t tokens_max) = 0;
  /// At most `tokens_max` tokens that may follow the log and `pending`, which is not in the log yet.
  [[nodiscard]] virtual graded_draft look(std::span<const token> pending, std::uint32_t tokens_max) const = 0;
};

}  // namespace redline::draft
