#pragma once

#include <cstdint>
#include <vector>

#include "runtime/draft/draft_source.hpp"
#include "runtime/draft/prompt_lookup.hpp"

namespace redline::draft {

/// Drafts by prompt lookup over the answer's own log.
class lookup_source final : public draft_source {
 public:
  /// ngram_max: length of the longest n-gram to look up, in tokens.
  explicit lookup_source(std::uint32_t ngram_max) : ngram_max_(ngram_max) {}

  void append(std::span<const token> committed, bool is_prompt) override;
  void drop(std::uint32_t at, std::uint32_t count) override;
  bool catch_up(std::uint32_t tokens_max) override;
  [[nodiscard]] graded_draft look(std::span<const token> pending, std::uint32_t tokens_max) const override;

 private:
  std::uint32_t ngram_max_;
  prompt_lookup log_;
  std::vector<token> waiting_;   // to be indexed after the tokens of the log that stay
  std::size_t kept_ = SIZE_MAX;  // tokens of the log to keep, if some must be removed
};

}  // namespace redline::draft
