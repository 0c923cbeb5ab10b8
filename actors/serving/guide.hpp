#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "actors/messages/answer_spec.hpp"
#include "actors/messages/session_messages.hpp"
#include "runtime/copy/program.hpp"
#include "runtime/grammar/copy_grammar.hpp"
#include "runtime/grammar/grammar_matcher.hpp"

namespace redline::actors {

[[nodiscard]] std::string_view name_of(copy_trust t);
[[nodiscard]] std::string_view name_of(span_reason r);
[[nodiscard]] std::optional<copy_trust> copy_trust_of(std::string_view name);

/// What holds an answer to a grammar; shared by the answers of one request.
struct guide_rules {
  std::shared_ptr<const grammar::compiled_grammar> grammar;
  grammar::constraint constraint;
  copy_options copy;  // programs only, as all below
  copy::program_shape shape;
  std::vector<copy::document> files;
  std::vector<std::vector<token>> file_tokens;  // with token_spans
};

inline constexpr std::size_t copy_file_bytes_max = 4 << 20;

/// Programs over these files. Fails for too many or too large files.
result<std::shared_ptr<const guide_rules>> copy_rules(std::shared_ptr<const grammar::token_trie> trie,
                                                      const std::vector<std::string>& files,
                                                      const copy_options& options);
/// Values of a JSON schema.
result<std::shared_ptr<const guide_rules>> json_rules(std::shared_ptr<const grammar::token_trie> trie,
                                                      const std::string& schema);

/// Follows an answer through its grammar: what its tokens mean as text, which tokens come without being asked for, and
/// where it ends. Of a program the text is what it resolves to.
class guide {
 public:
  explicit guide(std::shared_ptr<const guide_rules> rules);

  enum class verdict : std::uint8_t {
    taken,
    span_ended,  // the model did not go on with the span: the token is not part of the answer, the program goes on
    forbidden,   // no answer goes on so
  };
  /// The model's next token. text: what it adds to the answer. logprob: the model's own, when it is known.
  verdict take(token t, std::optional<float> logprob, std::string& text);
  /// The next token that is decided without the model, with its text.
  struct decided {
    token id = 0;
    std::string text;
  };
  std::optional<decided> next_decided();

  /// The answer is complete.
  [[nodiscard]] bool over() const;
  /// The model may end it here.
  [[nodiscard]] bool may_end() const;
  /// What is left of a span that the model is asked about; empty outside of one.
  [[nodiscard]] std::span<const token> span_left() const;
  /// The draft up to a token that the grammar forbids, or behind which the model is not asked.
  [[nodiscard]] std::vector<token> usable(std::vector<token> draft) const;
  /// A draft: how programs usually go on from here. Empty where nothing is usual.
  [[nodiscard]] std::vector<token> likely() const;
  [[nodiscard]] bool wants_logprobs() const {
    return is_copy() && rules_->copy.trust == copy_trust::automatic && !rules_->copy.anchors;
  }
  /// For the target model.
  [[nodiscard]] grammar::constraint where() const;
  /// Programs only: as executed, which resolves to the text even where the answer broke off; and what became of its
  /// spans.
  [[nodiscard]] copy_report report() const;

 private:
  /// The span in work.
  struct open_span {
    copied_span what;
    std::vector<token> tokens;
    std::string bytes;        // of the whole span
    std::size_t written = 0;  // tokens
    std::size_t text = 0;     // bytes
  };

  [[nodiscard]] bool is_copy() const { return rules_->constraint.kind == grammar::grammar_kind::copy; }
  [[nodiscard]] const grammar::copy_grammar& programs() const {
    return static_cast<const grammar::copy_grammar&>(rules_->grammar->automaton());
  }
  void advance_program(token t, std::optional<float> logprob, std::string& text);
  [[nodiscard]] std::pair<bool, span_reason> forces(const copy::copy_op& op) const;
  void begin_span();
  void write_span_token(std::string& text);
  void end_span();
  static void note_span(const open_span& span, const std::vector<copy::document>& files, copy_report& into,
                        copy::program& program);

  std::shared_ptr<const guide_rules> rules_;
  grammar::automaton_state state_;
  std::optional<copy::program_reader> reader_;
  copy::program program_;
  std::optional<open_span> span_;
  copy_report report_;
  double confidence_log_ = 0;  // of the copy that is being written
  bool confidence_known_ = true;
  std::string gen_text_;       // of the text op that is being written
  copy::anchor_pair anchors_;  // of the copy that is being written
};

}  // namespace redline::actors
