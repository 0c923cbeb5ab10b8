#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/base/ids.hpp"
#include "runtime/text/vocabulary.hpp"

namespace redline::text {

/// Finds the tokens that are matched as whole texts before any merging: user-defined ones always, control and unknown
/// ones if the caller wants special tokens parsed. Longer tokens are searched first through the whole text, so if two
/// overlap the longer one wins, even if it starts later; llama.cpp uses the same order. Stores views into the
/// vocabulary.
class special_splitter {
 public:
  explicit special_splitter(const vocabulary& vocab);

  /// A span of ordinary text, or one token.
  struct fragment {
    std::string_view text;
    std::optional<token> special;
  };
  /// Returns fragments in order, without empty texts. Whitespace that a token swallows is in no fragment.
  [[nodiscard]] std::vector<fragment> split(std::string_view text, bool parse_special) const;
  /// Whether some token swallows the whitespace after it.
  [[nodiscard]] bool swallows_space(bool parse_special) const;
  /// The start positions of texts that are tokens only if the caller wants special tokens parsed; ascending.
  [[nodiscard]] std::vector<std::size_t> find_parsed_only(std::string_view text) const;
  /// The texts that are always matched as separate tokens, none of them empty.
  [[nodiscard]] std::vector<std::string_view> always_matched() const;

 private:
  struct candidate {
    token id;
    std::string_view text;
    bool only_when_parsed;
    /// Whether it swallows the following whitespace. Files do not say; Phi-3's tokens are known to.
    bool swallows_space;
  };
  struct occurrence {
    std::size_t start;
    std::size_t candidate;  // index
    std::size_t end = 0;    // including the swallowed whitespace
  };
  /// A node of the trie of all candidates' texts, which finds them in one pass.
  struct node {
    std::vector<std::pair<char, std::uint32_t>> next;
    std::optional<std::size_t> candidate;
  };

  void insert(std::size_t index);
  [[nodiscard]] const node* child(const node& from, char byte) const;
  /// Ordered by start, shorter ones first.
  [[nodiscard]] std::vector<occurrence> occurrences(std::string_view text, bool parse_special) const;

  std::vector<candidate> candidates_;  // longest first
  std::vector<node> trie_;
};

}  // namespace redline::text
