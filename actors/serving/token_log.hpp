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

/// An answer to generate: its terms, and what it goes on from.
struct generation_spec : answer_terms {
  std::vector<token> prompt;      // afterwards the log has it
  std::uint32_t context_max = 0;  // of prompt and answer together, or of the window that moves over them
  /// Of a conversation: its older turns, the only part of the prompt that may leave the window, whole and oldest first.
  /// Absent: a text of which any token after the first n_keep may go.
  std::optional<std::vector<token_range>> turns;
  std::shared_ptr<const output_rules> rules;  // the grammar of the answer; null: any text
};

/// How clients (LiteLLM, and agents by it) recognise that a conversation has to be made shorter: by these words.
std::string context_sentence(std::uint64_t tokens_max);

/// A token id that the vocabulary lacks, and the option of the request that named it.
struct unknown_token {
  std::string field;
  failure why;
};
/// The first one beside the prompt's; nullopt: there is none.
std::optional<unknown_token> find_unknown_token(const generation_spec& spec, const text::tokenizer& tokenizer);

/// The committed log of one answer, and what it means as text: appends tokens, cuts at end tokens, stop strings and
/// limits. Tokens once committed are never undone; with eviction, the log is a window over them.
class token_log {
 public:
  /// Fails when the prompt is empty, leaves no room for an answer, holds ids outside the vocabulary, or a stop is bad;
  /// and when the window has no room for what is kept, what is discarded and one token more. With eviction, a
  /// conversation that is too long for the window begins without its oldest turns.
  static result<token_log> make(generation_spec spec, std::shared_ptr<const text::tokenizer> tokenizer);

  struct progress {
    std::string text;
    std::vector<token> tokens;
    std::vector<sampling::emitted_logprob> logprobs;
    std::vector<std::uint32_t> bytes;  // of text, by token, even where it comes later; only for a trace
    std::optional<finish_reason> finished;
    std::optional<failure> why_not;  // with `failed`
    std::uint32_t agreed_count = 0;  // length of the log up to where it is what the committed tokens said
    bool is_cut = false;             // `go_on`, before anything else, has more that is decided
  };
  /// Appends what is decided before the model is asked: how a grammar has to begin. Once, before the first commit.
  progress begin();
  /// Appends tokens up to where the answer ends, and what a grammar decides after them. logprobs: one per token, or
  /// none.
  progress commit(std::span<const token> tokens, std::span<const sampling::emitted_logprob> logprobs = {});
  /// Ends the answer where it stands.
  progress cut();
  /// The stop string that ended the answer; empty: another thing did.
  [[nodiscard]] std::string_view stop_text() const {
    return stops_.matched() ? std::string_view(stops_.stop(*stops_.matched())) : std::string_view{};
  }
  /// More of what is decided, where the last step was cut lest it take too long.
  progress go_on();
  /// After a step that is cut: what can be spelled on another thread; else `go_on` does it.
  [[nodiscard]] std::optional<unspelled_span> unspelled() const {
    return constrained_ ? constrained_->unspelled() : std::optional<unspelled_span>{};
  }
  void spell_span(std::vector<token> spelling) { constrained_->spell_span(std::move(spelling)); }

  /// Tokens [at, at + count) of the log that leave it.
  struct evicted {
    std::uint32_t at = 0;
    std::uint32_t count = 0;
  };
  /// Takes the oldest turns out of a window that is full, or when there are none the oldest tokens after the kept
  /// ones. Where depends on the tokens only, so an answer evicts at the same places with every drafter.
  std::optional<evicted> make_room();

  /// The draft up to a token that does not exist or that the grammar forbids, or to where only the target's own token
  /// still has room.
  [[nodiscard]] std::vector<token> usable(std::vector<token> draft) const;

  /// How an answer under a grammar probably goes on, as far as there is room; empty: unknown.
  [[nodiscard]] std::vector<token> likely_draft() const {
    return constrained_ ? usable(constrained_->likely_rest()) : std::vector<token>{};
  }
  /// How a call goes on; see constrained_output. tokens_max: at least a token less than there is room for.
  [[nodiscard]] draft::graded_draft likely_call(std::uint32_t tokens_max) const {
    grammar::step_count steps(constrained_output::draft_steps_max);
    return constrained_ ? constrained_->likely_call(tokens_max, steps) : draft::graded_draft{};
  }
  /// What comes next by `known_text`, as far as there is room and one pass may take; empty: nothing is known.
  [[nodiscard]] std::vector<token> known_draft() const;
  /// A span of a program that the model is to be asked about, as far as there is room; empty: none.
  [[nodiscard]] std::vector<token> span_draft() const;
  /// A span of a program is open that the model is to be asked about.
  [[nodiscard]] bool in_span() const { return constrained_ && !constrained_->span_left().empty(); }
  /// What answers follow, without a state.
  [[nodiscard]] grammar::constraint grammar() const {
    return constrained_ ? constrained_->grammar() : grammar::constraint{};
  }
  /// Where in it the log ends.
  [[nodiscard]] std::vector<std::uint32_t> grammar_state() const {
    return constrained_ ? constrained_->grammar_state() : std::vector<std::uint32_t>{};
  }
  /// Alternatives to ask for with each token.
  [[nodiscard]] std::optional<std::uint32_t> logprobs() const {
    return constrained_ && constrained_->wants_logprobs() ? std::optional(spec_.logprobs.value_or(0)) : spec_.logprobs;
  }
  [[nodiscard]] copy_report copied() const { return is_program() ? constrained_->report() : copy_report{}; }
  [[nodiscard]] bool is_program() const { return constrained_ && constrained_->is_program(); }

  [[nodiscard]] std::span<const token> log() const { return log_; }
  [[nodiscard]] std::uint32_t log_count() const { return static_cast<std::uint32_t>(log_.size()); }
  /// Those of the log that are the prompt: all of it until some are evicted.
  [[nodiscard]] std::uint32_t prompt_count() const { return prompt_left_; }
  [[nodiscard]] std::uint64_t evicted_count() const { return evicted_count_; }
  [[nodiscard]] std::uint32_t output_count() const { return output_count_; }
  /// Tokens that may still come.
  [[nodiscard]] std::uint32_t room() const { return output_max_ - output_count_; }
  /// Tokens that may come in one round: no more than the window takes.
  [[nodiscard]] std::uint32_t round_room() const { return std::min(room(), window_max_ - log_count()); }
  /// Tokens that the log can reach.
  [[nodiscard]] std::uint32_t tokens_max() const {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(window_max_, std::uint64_t{prompt_count_} + output_max_));
  }
  [[nodiscard]] const generation_spec& spec() const { return spec_; }

 private:
  token_log(generation_spec spec, std::shared_ptr<const text::tokenizer> tokenizer, text::stop_matcher stops);
  [[nodiscard]] static std::uint32_t window_of(const generation_spec& spec);

  [[nodiscard]] bool ends_with(token t) const;
  [[nodiscard]] std::string up_to_shallow_line(std::string text, progress& into);
  [[nodiscard]] bool evicts() const { return spec_.eviction.policy != kv::eviction_policy::off; }
  [[nodiscard]] evicted take_turns(std::uint32_t wanted);
  [[nodiscard]] evicted oldest_tokens() const;
  void take_out(evicted gone);
  void append(token t, std::string_view text, progress& into);
  void append_decided(progress& into);
  [[nodiscard]] bool fails_by_ambiguity(progress& into) const;
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
  std::vector<token_range> turns_;  // that the log still has and may lose
  std::uint32_t discard_count_ = 0;
  std::uint64_t evicted_count_ = 0;
  std::size_t known_at_ = 0;                  // bytes of the known text that the answer has
  bool is_shallow_ = false;                   // a line that is indented by too little has ended the answer
  std::optional<std::uint32_t> indentation_;  // of the line that has begun, while it is all blanks; not of the first
  text::stop_matcher stops_;
  utf8::stream characters_;
};

}  // namespace redline::actors
