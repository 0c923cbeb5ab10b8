#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "actors/messages/session_messages.hpp"
#include "actors/serving/constrained_output.hpp"
#include "runtime/base/token_range.hpp"
#include "runtime/base/utf8.hpp"
#include "runtime/draft/draft_options.hpp"
#include "runtime/kv/eviction.hpp"
#include "runtime/text/stop_matcher.hpp"
#include "runtime/text/tokenizer.hpp"
#include "runtime/trace/span_context.hpp"

namespace redline::actors {

/// An answer to generate: its terms, and what it continues.
struct generation_spec : answer_terms {
  std::vector<token> prompt;      // moved into the log
  std::uint32_t context_max = 0;  // limit of prompt and answer together, or of the window that moves over them
  /// The older turns of a conversation: the only part of its prompt that may leave the window, whole and oldest first.
  /// Absent for a text, of which any token after the first n_keep may go.
  std::optional<std::vector<token_range>> turns;
  std::shared_ptr<const output_rules> rules;  // the grammar of the answer; null if any text may follow
};

/// The words by which clients (LiteLLM, and agents that use it) recognize that a conversation must be shortened.
std::string context_sentence(std::uint64_t tokens_max);

/// A token id that the vocabulary lacks, and the option of the request that named it.
struct unknown_token {
  std::string field;
  failure why;
};
/// The first one outside the prompt; nullopt if there is none.
std::optional<unknown_token> find_unknown_token(const generation_spec& spec, const text::tokenizer& tokenizer);

/// The committed log of one answer, and its text: appends tokens, and cuts at end tokens, stop strings and limits.
/// Committed tokens are never undone; with eviction, the log is a window over them.
class token_log {
 public:
  /// Fails when the prompt is empty, leaves no space for an answer or has ids outside the vocabulary, when a stop is
  /// bad, and when the window cannot fit what is kept, what is discarded and one more token. With eviction, a
  /// conversation that is too long for the window begins without its oldest turns.
  static result<token_log> make(generation_spec spec, std::shared_ptr<const text::tokenizer> tokenizer);

  struct progress {
    std::string text;
    std::vector<token> tokens;
    std::vector<sampling::emitted_logprob> logprobs;
    std::vector<std::uint32_t> bytes;  // bytes of text per token, even if the text comes later; only for a trace
    std::optional<finish_reason> finished;
    std::optional<failure> why_not;  // with `failed`
    std::uint32_t agreed_count = 0;  // how much of the log agrees with the committed tokens
    bool is_cut = false;             // more is decided: `go_on` must come next
  };
  /// Appends what is decided before the model is asked: how a grammar has to begin. Called once, before the first
  /// commit.
  progress begin();
  /// Appends tokens up to the answer's end, and what a grammar decides after them. logprobs: one per token, or none.
  progress commit(std::span<const token> tokens, std::span<const sampling::emitted_logprob> logprobs = {});
  /// Ends the answer at its present length.
  progress cut();
  /// The stop string that ended the answer; empty if something else did.
  [[nodiscard]] std::string_view stop_text() const {
    return stops_.matched() ? std::string_view(stops_.stop(*stops_.matched())) : std::string_view{};
  }
  /// Appends more of what is decided, after a step that was cut lest it take too long.
  progress go_on();
  /// After a step that was cut: what can be tokenized on another thread; otherwise `go_on` does it.
  [[nodiscard]] std::optional<untokenized_span> untokenized() const {
    return constrained_ ? constrained_->untokenized() : std::optional<untokenized_span>{};
  }
  void tokenize_span(std::vector<token> spelling) { constrained_->tokenize_span(std::move(spelling)); }

  /// Tokens [at, at + count) of the log that leave it.
  struct evicted {
    std::uint32_t at = 0;
    std::uint32_t count = 0;
  };
  /// Removes the oldest turns from a full window, or, when there are none, the oldest tokens after the kept ones. The
  /// choice depends on the tokens only, so an answer evicts at the same positions with every drafter.
  std::optional<evicted> make_room();

  /// The draft up to the first token that does not exist or that the grammar forbids, leaving space for the target's
  /// own token.
  [[nodiscard]] std::vector<token> usable(std::vector<token> draft) const;

  /// How an answer under a grammar probably goes on, as far as it fits; empty if unknown.
  [[nodiscard]] std::vector<token> likely_draft() const {
    return constrained_ ? usable(constrained_->likely_continuation()) : std::vector<token>{};
  }
  /// How a call goes on; see constrained_output. tokens_max: must leave space for one more token.
  [[nodiscard]] draft::graded_draft likely_call(std::uint32_t tokens_max) const {
    grammar::step_count steps(constrained_output::draft_steps_max);
    return constrained_ ? constrained_->likely_call(tokens_max, steps) : draft::graded_draft{};
  }
  /// What comes next in `known_text`, as far as it fits and one pass takes it; empty if nothing is known.
  [[nodiscard]] std::vector<token> known_draft() const;
  /// A span of a program that the model is to be asked about, as far as it fits; empty if there is none.
  [[nodiscard]] std::vector<token> span_draft() const;
  /// Whether a program's span is open that the model is to be asked about.
  [[nodiscard]] bool in_span() const { return constrained_ && !constrained_->span_left().empty(); }
  /// What the answer follows, without a state.
  [[nodiscard]] grammar::constraint grammar() const {
    return constrained_ ? constrained_->grammar() : grammar::constraint{};
  }
  /// The grammar's state at the end of the log.
  [[nodiscard]] std::vector<std::uint32_t> grammar_state() const {
    return constrained_ ? constrained_->grammar_state() : std::vector<std::uint32_t>{};
  }
  /// The number of alternatives to ask for with each token.
  [[nodiscard]] std::optional<std::uint32_t> logprobs() const {
    return constrained_ && constrained_->wants_logprobs() ? std::optional(spec_.logprobs.value_or(0)) : spec_.logprobs;
  }
  [[nodiscard]] copy_report copied() const { return is_program() ? constrained_->report() : copy_report{}; }
  [[nodiscard]] bool is_program() const { return constrained_ && constrained_->is_program(); }

  [[nodiscard]] std::span<const token> log() const { return log_; }
  [[nodiscard]] std::uint32_t log_count() const { return static_cast<std::uint32_t>(log_.size()); }
  /// The prompt's tokens in the log: all of them until some are evicted.
  [[nodiscard]] std::uint32_t prompt_count() const { return prompt_left_; }
  [[nodiscard]] std::uint64_t evicted_count() const { return evicted_count_; }
  [[nodiscard]] std::uint32_t output_count() const { return output_count_; }
  /// Tokens that may still come.
  [[nodiscard]] std::uint32_t room() const { return output_max_ - output_count_; }
  /// Tokens that may come in one round: no more than the window takes.
  [[nodiscard]] std::uint32_t round_room() const { return std::min(room(), window_max_ - log_count()); }
  /// The most tokens that the log can reach.
  [[nodiscard]] std::uint32_t tokens_max() const {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(window_max_, std::uint64_t{prompt_count_} + output_max_));
  }
  [[nodiscard]] const generation_spec& spec() const { return spec_; }

 private:
  token_log(generation_spec spec, std::shared_ptr<const text::tokenizer> tokenizer, text::stop_matcher stops);
  [[nodiscard]] static std::uint32_t window_of(const generation_spec& spec);

  [[nodiscard]] bool ends_with(token t) const;
  [[nodiscard]] std::string cut_at_low_indent(std::string text, progress& into);
  [[nodiscard]] bool evicts() const { return spec_.eviction.policy != kv::eviction_policy::off; }
  [[nodiscard]] evicted take_turns(std::uint32_t wanted);
  [[nodiscard]] evicted oldest_tokens() const;
  void take_out(evicted gone);
  void append(token t, std::string_view text, progress& into);
  void append_decided(progress& into);
  [[nodiscard]] bool fails_by_lost_grammar(progress& into) const;
  void follow_known_text(std::string_view text);
  void close(progress& into);

  generation_spec spec_;
  std::shared_ptr<const text::tokenizer> tokenizer_;
  std::optional<constrained_output> constrained_;
  std::vector<token> log_;
  std::uint32_t prompt_count_ = 0;
  std::uint32_t prompt_left_ = 0;
  std::uint32_t output_count_ = 0;
  std::uint32_t output_max_ = 0;
  std::uint32_t window_max_ = 0;
  std::vector<token_range> turns_;  // turns that the log still has and may lose
  std::uint32_t discard_count_ = 0;
  std::uint64_t evicted_count_ = 0;
  std::size_t known_at_ = 0;                  // bytes of the known text that the answer has
  bool is_shallow_ = false;                   // a line with too little indentation has ended the answer
  std::optional<std::uint32_t> indentation_;  // indentation of a line after the first, while it is all whitespace
  text::stop_matcher stops_;
  utf8::stream characters_;
};

}  // namespace redline::actors
