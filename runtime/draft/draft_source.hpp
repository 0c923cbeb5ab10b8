#pragma once

#include <cstdint>
#include <span>

#include "runtime/draft/source.hpp"

namespace redline::draft {

/// How a source's drafts rank against those of other sources.
enum class standing : std::uint8_t {
  binding,  // known to be the answer, or a span that the model is asked about: always verified
  form,     // determined by a grammar and usage: no method that is requested by name needs its model for it
  text,     // copied from a text
};

/// Makes drafts of one answer from one kind of knowledge. A new source needs a class with these functions, its row in
/// `source`, and a line where an answer's book is filled (`actors/serving/answer_sources`). It must not store anything
/// from other tenants' answers.
class draft_source {
 public:
  virtual ~draft_source() = default;

  [[nodiscard]] virtual standing stands() const { return standing::text; }
  /// Continues the log with these tokens. is_prompt: they belong to the prompt.
  virtual void append(std::span<const token> committed, bool is_prompt) = 0;
  /// Removes tokens [at, at + count) from the log; those after them move up.
  virtual void drop(std::uint32_t at, std::uint32_t count) = 0;
  /// Does work that `append` and `drop` deferred, for at most `tokens_max` tokens. Returns true if there is more; until
  /// it is done, `look` finds nothing.
  virtual bool catch_up(std::uint32_t tokens_max) = 0;
  /// Returns at most `tokens_max` tokens that may follow the log and `pending`, which is not in the log yet.
  [[nodiscard]] virtual graded_draft look(std::span<const token> pending, std::uint32_t tokens_max) const = 0;
};

}  // namespace redline::draft
