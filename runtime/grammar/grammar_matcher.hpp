#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/grammar/constraint.hpp"
#include "runtime/grammar/token_trie.hpp"
#include "runtime/model/row_filter.hpp"

namespace redline::grammar {

/// A machine over a vocabulary. Where the language leaves one byte only, the tokens of what must follow are decided
/// (`forced`): by the state alone, so whoever follows the text writes the same ones. The last one in front of a choice
/// is the model's: where "<" must follow, it may know "</" and "<copy" only, and "<" alone would be no text it has
/// seen.
class compiled_grammar {
 public:
  compiled_grammar(std::shared_ptr<const machine> rules, std::shared_ptr<const token_trie> trie)
      : rules_(std::move(rules)), trie_(std::move(trie)) {}

  [[nodiscard]] const machine& rules() const { return *rules_; }
  [[nodiscard]] const token_trie& trie() const { return *trie_; }

  [[nodiscard]] std::optional<token> forced(const state& s) const;
  /// Whether `t` can come at `s`, which then stands behind it: a token of the text, of what is forced the forced one,
  /// or any where free tokens stand.
  [[nodiscard]] bool advance(state& s, token t) const;
  /// The tokens by which a model is made to write `text`, from the beginning; nullopt when the grammar forbids it. For
  /// benchmarks. at_stand: what to write where the machine stands, and how it goes on.
  template<class AtStand>
  [[nodiscard]] std::optional<std::vector<token>> write(std::string_view text, AtStand at_stand) const {
    std::vector<token> out;
    state s = rules_->begin();
    while (!text.empty() || rules_->stands(s)) {
      if (rules_->stands(s)) {
        at_stand(s, out);
        continue;
      }
      auto t = forced(s);
      if (!t) t = trie_->longest(*rules_, s, text);
      if (!t || !text.starts_with(trie_->tokenizer().piece(*t)) || !advance(s, *t)) return std::nullopt;
      text.remove_prefix(trie_->tokenizer().piece(*t).size());
      out.push_back(*t);
    }
    return out;
  }

 private:
  std::shared_ptr<const machine> rules_;
  std::shared_ptr<const token_trie> trie_;
  static constexpr std::size_t first_tokens_max = 256;
  mutable std::mutex mutex_;
  mutable std::unordered_map<std::string, std::optional<token>> first_tokens_;  // of forced bytes and how they end
};

/// The languages that one target model is asked about, each with the masks of the states it met. Bounded; what was
/// forgotten is made again. For one thread.
class grammar_cache {
 public:
  explicit grammar_cache(std::shared_ptr<const token_trie> trie) : trie_(std::move(trie)) {}

  struct entry {
    constraint grammar;  // without a place
    std::shared_ptr<const compiled_grammar> language;
    std::unordered_map<std::string, token_mask> masks;  // by the state's cells
    std::uint64_t used = 0;
  };
  /// Fails for a constraint that makes no sense, its place included. Valid until the next call.
  result<entry*> find(const constraint& c);

  static constexpr std::size_t languages_max = 128;
  static constexpr std::size_t masks_max = 24;  // of one language; a mask of 150,000 tokens is 19 KB

 private:
  std::shared_ptr<const token_trie> trie_;  // null: nothing is found
  std::vector<std::unique_ptr<entry>> entries_;
  std::uint64_t clock_ = 0;
};

/// One sequence's rows under its grammar.
class grammar_matcher final : public model::row_filter {
 public:
  /// `where`: as `find` has checked it. Must not outlive the entry.
  grammar_matcher(grammar_cache::entry& language, const constraint& where)
      : language_(language), state_(where.where.empty() ? language.language->rules().begin() : state(where.where)) {}

  std::span<const std::uint64_t> allowed() override;
  bool take(token chosen) override;

 private:
  grammar_cache::entry& language_;
  state state_;
  token_mask single_;
};

}  // namespace redline::grammar
