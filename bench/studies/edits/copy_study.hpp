#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "actors/serving/constrained_output.hpp"
#include "bench/studies/common/edit_corpus.hpp"
#include "bench/studies/common/names.hpp"

namespace redline::studies {

/// Milliseconds of one run of N tokens after a context, and of a decode step there.
struct run_price {
  std::uint32_t tokens = 0;
  double run_ms = 0;         // logits of the last row only
  double all_logits_ms = 0;  // logits of every row
  double steps_ms = 0;       // of N decode steps
  [[nodiscard]] double speed_up() const;
  /// Share of the time that rows without logits save.
  [[nodiscard]] double saving() const;
};

/// s(N), from the measured lengths: between two of them in proportion of the logarithms, outside as the nearest.
class speed_up_curve {
 public:
  /// prices: rising by tokens, not empty; users: decode steps are shared by so many, at the price of step_ms.
  explicit speed_up_curve(const std::vector<run_price>& prices) : prices_(prices) {}
  speed_up_curve(const std::vector<run_price>& prices, double ms_per_decoded_token);
  [[nodiscard]] double at(double tokens) const;

 private:
  std::vector<run_price> prices_;
};

/// What of new files can be copied, in tokens.
struct copy_cover {
  std::uint64_t tokens = 0;          // of the new files
  std::uint64_t asked = 0;           // tokens of programs that a model chooses; 0: no programs were looked at
  std::vector<std::uint32_t> spans;  // lengths

  [[nodiscard]] std::uint64_t copied() const;
  [[nodiscard]] double share() const;
  /// 1 / ((1 - f) + f / s): what copying brings when programs cost nothing but the text they write.
  [[nodiscard]] double bound(const speed_up_curve& s) const;
  /// The same with all that the model has to choose: which op, numbers, ends of texts.
  [[nodiscard]] double program_bound(const speed_up_curve& s) const;
  copy_cover& operator+=(const copy_cover& o);
};

/// Whole lines, as the shortest program copies them.
[[nodiscard]] copy_cover line_cover(const known_edit& e, const std::shared_ptr<const grammar::token_trie>& trie);
/// Greedy longest matches of tokens from left to right, of `span_min` at least.
[[nodiscard]] copy_cover token_cover(const known_edit& e, const grammar::token_trie& trie, std::uint32_t span_min);

/// The tokens by which a model writes this program, with its spans, as the actors write it; nullopt when it cannot.
/// asked: how many of them it has to choose.
std::optional<std::vector<token>> program_tokens(const output_rules& rules, const std::string& program,
                                                 std::uint64_t* asked = nullptr);

/// A model that knows the new file and is wrong about where spans end: each end is off by up to `lines`, at random. It
/// is sure of an op's numbers, or not at all.
struct clumsy_model {
  std::uint32_t lines = 0;
  bool plans_anew = false;  // at each op, for what is missing then; else it writes one program to its end
  std::uint32_t seed = 0;
  double knows = 0.9;  // how often it is sure of a right op, and unsure of a wrong one
};
/// Whether what it writes resolves to the new file. It agrees with a span as far as that goes on as the new file does,
/// and its anchors name the lines that it means.
[[nodiscard]] bool writes_exactly(const clumsy_model& m, const known_edit& e,
                                  const std::shared_ptr<const grammar::token_trie>& trie, const copy_options& how);

/// Microseconds that a row's mask takes, by place in the grammar.
struct mask_price {
  std::string place;
  double first_us = 0;  // the place is met for the first time
  double again_us = 0;
};
[[nodiscard]] std::vector<mask_price> price_masks(const std::shared_ptr<const grammar::token_trie>& trie);

}  // namespace redline::studies
