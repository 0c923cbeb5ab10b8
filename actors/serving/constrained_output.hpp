#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "actors/serving/copy_executor.hpp"
#include "actors/serving/output_rules.hpp"
#include "runtime/draft/escaped_copy.hpp"
#include "runtime/draft/source.hpp"

namespace redline::actors {

/// An answer that follows a grammar: the text that its tokens stand for, which tokens are decided without the model,
/// and where it ends. The text of an edit program is the program's result.
class constrained_output {
 public:
  explicit constrained_output(std::shared_ptr<const output_rules> rules);

  enum class acceptance : std::uint8_t {
    taken,       // the model chose it
    decided,     // no other could follow, whatever the model says of it
    span_ended,  // the model left the span: the token is not part of the answer, the program goes on
    forbidden,   // the grammar forbids it
  };
  /// Takes the next token of a pass. logprob: the model's own, if known. Appends what the token adds to `text`.
  acceptance accept_token(token t, std::optional<float> logprob, std::string& text);
  /// A copied span that has begun and must be tokenized before the answer goes on: by the caller on another thread, or
  /// by the next `next_decided`. Short ones are tokenized at once.
  [[nodiscard]] std::optional<untokenized_span> untokenized() const {
    return copy_ ? copy_->untokenized() : std::optional<untokenized_span>{};
  }
  void tokenize_span(std::vector<token> spelling);
  struct decided {
    token id = 0;
    bool is_copied = false;  // a forced span decides it, not the grammar
  };
  /// The next token if it is decided without the model.
  std::optional<decided> next_decided(grammar::step_count& steps);
  /// Takes what `next_decided` has just returned, and appends what the token adds to the answer to `text`.
  void append_decided(const decided& next, std::string& text);

  /// The answer is complete.
  [[nodiscard]] bool is_complete() const;
  /// The grammar is too ambiguous: what may follow is unknown.
  [[nodiscard]] bool is_lost() const;
  /// The model may end the answer here.
  [[nodiscard]] bool may_end() const;
  /// The remaining tokens of a span that the model is to verify; empty outside of one.
  [[nodiscard]] std::span<const token> span_left() const {
    return copy_ ? copy_->span_left() : std::span<const token>{};
  }
  /// Limits the steps of a draft to about 3 ms: 64 tokens that are each tokenized from all 256 bytes that must follow.
  static constexpr std::uint64_t draft_steps_max = std::uint64_t{64} * 256 * 16;
  /// The draft up to the first token that is forbidden or not asked of the model, or to where `steps` are over.
  [[nodiscard]] std::vector<token> usable(std::vector<token> draft, grammar::step_count& steps) const;
  /// A draft: how edit programs usually go on from here. Empty if no continuation is usual.
  [[nodiscard]] std::vector<token> likely_continuation() const;
  /// A draft of a call: what its arguments copy, escaped for JSON, and around it what the grammar leaves, without
  /// optional whitespace and members. It contains nothing that the grammar forbids. It is shorter where `steps` are
  /// over.
  [[nodiscard]] draft::graded_draft likely_call(std::uint32_t tokens_max, grammar::step_count& steps) const;
  /// Spans are judged by the model's logprobs.
  [[nodiscard]] bool wants_logprobs() const;
  /// The grammar, for the target model, and the cells of the position in it.
  [[nodiscard]] const grammar::constraint& grammar() const { return rules_->constraint; }
  [[nodiscard]] std::vector<std::uint32_t> grammar_state() const;
  [[nodiscard]] bool is_program() const { return copy_.has_value(); }
  /// Edit programs only: what was executed, and what became of the copied spans.
  [[nodiscard]] copy_report report() const { return copy_->report(); }

 private:
  void begin_span();
  struct call_follower;
  void follow_arguments(std::string_view piece);
  [[nodiscard]] std::string_view likely_sign(const call_follower& at, grammar::step_count& steps) const;
  void advance(token t, std::optional<float> logprob, std::string& text);

  std::shared_ptr<const output_rules> rules_;
  grammar::automaton_state state_;
  std::optional<copy_executor> copy_;             // only for an edit program
  std::optional<draft::escaped_copy> arguments_;  // only for an answer that may call tools
  bool in_arguments_ = false;
};

}  // namespace redline::actors
