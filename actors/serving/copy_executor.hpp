#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actors/serving/output_rules.hpp"

namespace redline::actors {

/// Evidence for the span of a copy op, gathered while the op is written.
struct span_evidence {
  double logprob = 0;         // the sum over the tokens that chose the span,
  bool logprob_known = true;  // unless one of them has none
  copy::anchor_pair anchors;
};

/// Returns true if the span is forced, that is, in the answer because the program says so, or false if the model is to
/// verify it; and the reason.
std::pair<bool, span_reason> decide_trust(const output_rules& rules, const copy::copy_op& op,
                                          const span_evidence& evidence);

/// A copied span of lines that must be tokenized.
struct untokenized_span {
  std::shared_ptr<const output_rules> rules;  // keep the bytes alive
  std::string_view bytes;

  /// Takes time in proportion to the span. Safe from any thread.
  [[nodiscard]] std::vector<token> spell() const;
};

/// Executes an edit program while it is written: returns the text that it adds to the answer, inserts the copied spans,
/// and reports what became of them.
class copy_executor {
 public:
  /// rules: of an edit program.
  explicit copy_executor(std::shared_ptr<const output_rules> rules);

  /// Takes the program's next token, which the grammar has accepted, outside of a span, and appends what it adds to the
  /// answer to `text`. logprob: the model's own; 0 for a token that was decided without it. A span may be open
  /// afterwards.
  void feed(std::string_view piece, std::optional<float> logprob, std::string& text);

  /// A copied span is being inserted.
  [[nodiscard]] bool in_span() const { return span_.has_value(); }
  /// The open span, when it must be tokenized (`tokenize_span`) before its tokens can be inserted.
  [[nodiscard]] std::optional<untokenized_span> untokenized() const;
  void tokenize_span(std::vector<token> spelling);
  [[nodiscard]] bool is_span_forced() const { return span_ && span_->what.forced; }
  /// The remaining tokens of the open span; empty outside of one.
  [[nodiscard]] std::span<const token> span_left() const;
  /// Inserts the open span's next token, appends its text and returns it. This may close the span.
  token insert_span_token(std::string& text);
  /// Closes the open span, which the model has refused: what is not inserted yet is not copied.
  void refuse_span();

  /// How programs usually go on from here, as the program's text. Empty inside a span, or if no continuation is usual.
  [[nodiscard]] std::string likely_continuation() const;
  /// The program as executed, which resolves to the answer's text even if the answer broke off.
  [[nodiscard]] copy_report report() const;

 private:
  struct open_span {
    copied_span what;
    std::string_view bytes;                      // the whole span, in the rules' file
    std::optional<std::vector<token>> spelling;  // only for a span of lines
    std::size_t inserted_count = 0;              // tokens
    std::size_t inserted_bytes = 0;
  };

  void feed_byte(char c, std::string& text);
  void open(const copy::copy_op& op);
  void close_span();
  [[nodiscard]] std::span<const token> span_tokens() const;
  void note_copied(const open_span& span, copy_report& into, copy::program& program) const;

  std::shared_ptr<const output_rules> rules_;
  copy::program_reader reader_;
  copy::program program_;  // as executed, complete ops only
  std::string gen_text_;   // text of the op that is being written
  span_evidence evidence_;
  std::optional<open_span> span_;
  copy_report report_;  // spans only
};

}  // namespace redline::actors
