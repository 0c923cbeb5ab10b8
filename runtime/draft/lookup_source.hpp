#pragma once

#include <cstdint>
#include <vector>

#include "runtime/draft/draft_source.hpp"
#include "runtime/draft/prompt_lookup.hpp"

namespace redline::draft {

/// Drafts by prompt lookup over the answer's own log.
class lookup_source final : public draft_source {
 public:
  /// ngram_max: tokens of the longest n-gram that is looked up.
  explicit lookup_source(std::uint32_t ngram_max) : ngram_max_(ngram_max) {}

  void append(std::span<const token> committed, bool is_prompt) override;
  void drop(std::uint32_t at, std::uint32_t count) override;
  bool catch_up(std::uint32_t tokens_max) override;
  [[nodiscard]] graded_draft look(std::span<const token> pending, std::uint32_t tokens_max) const override;

 private:
  std::uint32_t ngram_max_;
  prompt_lookup log_;
  std::vector<token> waiting_;   // after those of the log that stay; not indexed yet
  std::size_t kept_ = SIZE_MAX;  // of the log, where some of it has to go
};

}  // namespace redline::draft
