#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "actors/messages/answer_terms.hpp"
#include "actors/serving/session.hpp"
#include "actors/serving/token_log.hpp"
#include "runtime/base/outcome.hpp"

namespace redline::actors {

/// Turns what a request asks for into what a session needs. Shared by everything that spawns sessions.
class answer_factory {
 public:
  struct parts {
    std::shared_ptr<const text::tokenizer> tokenizer;
    std::shared_ptr<const grammar::token_trie> token_trie;  // null if there are no grammars
    std::shared_ptr<grammar::automaton_store> automata = std::make_shared<grammar::automaton_store>();
    std::uint32_t context_max = 0;
    /// The partners of a session that drafts by this method and reports to this client.
    std::function<result<session_partners>(draft::method, actor::address client)> partners_for;
    /// Called for each answer with its prompt, in tests and measurements that know the answer beforehand; may be empty.
    /// A failure refuses the request.
    std::function<result<void>(session_id, std::span<const token> prompt, const output_rules* rules)> on_answer = {};
  };

  explicit answer_factory(parts from);

  [[nodiscard]] const std::shared_ptr<const text::tokenizer>& tokenizer() const { return parts_.tokenizer; }
  [[nodiscard]] const std::shared_ptr<grammar::automaton_store>& automata() const { return parts_.automata; }
  /// The most tokens of prompt and answer together.
  [[nodiscard]] std::uint32_t context_max() const {
    return std::min(parts_.context_max, room_.load(std::memory_order_relaxed));
  }
  /// Sets what the target model's process has memory for: the context may be smaller from now on. Safe from any thread.
  void set_tokens_max(std::uint32_t tokens_max) const { room_.store(tokens_max, std::memory_order_relaxed); }

  [[nodiscard]] std::size_t longest_piece_bytes() const { return longest_piece_bytes_; }
  /// The fewest tokens that a text of so many bytes can have.
  [[nodiscard]] std::size_t tokens_min(std::size_t bytes) const { return bytes / longest_piece_bytes_; }
  /// Refuses a text that cannot fit into the context, before it is tokenized.
  [[nodiscard]] std::optional<refusal> check_length(std::size_t bytes, const std::string& field) const;

  /// The grammar of the answers; null for free text. Its time grows with what the client sent. Safe from any thread.
  [[nodiscard]] outcome<std::shared_ptr<const output_rules>, refusal> rules_for(const answer_terms& terms) const;
  [[nodiscard]] outcome<session_partners, refusal> partners_for(draft::method how, actor::address client) const;
  /// turns: see generation_spec. prompt_field: the field that a refusal of the prompt names.
  [[nodiscard]] outcome<token_log, refusal> make(const answer_terms& terms, std::vector<token> prompt,
                                                 std::shared_ptr<const output_rules> rules,
                                                 std::optional<std::vector<token_range>> turns,
                                                 const std::string& prompt_field) const;

  struct answer {
    token_log work;
    session_partners partners;
  };
  /// Both of the above for one answer.
  [[nodiscard]] outcome<answer, refusal> prepare(const answer_terms& terms, std::vector<token> prompt,
                                                 std::shared_ptr<const output_rules> rules,
                                                 std::optional<std::vector<token_range>> turns,
                                                 const std::string& prompt_field, actor::address client) const;

 private:
  parts parts_;
  mutable std::atomic<std::uint32_t> room_{0xffffffffU};
  std::vector<token> end_tokens_;
  std::size_t longest_piece_bytes_ = 1;
};

}  // namespace redline::actors
