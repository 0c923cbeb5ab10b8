#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "actors/serving/constrained_output.hpp"
#include "bench/studies/common/edit_corpus.hpp"
#include "bench/studies/common/names.hpp"

namespace redline::studies {

/// The milliseconds of one run of N tokens after a context, and of a decode step there.
struct run_cost {
  std::uint32_t tokens = 0;
  double run_ms = 0;         // with logits of the last row only
  double all_logits_ms = 0;  // with logits of every row
  double steps_ms = 0;       // time of N decode steps
  [[nodiscard]] double speed_up() const;
  /// The share of the time that is saved by rows without logits.
  [[nodiscard]] double saving() const;
};

/// s(N), interpolated between measured lengths by their logarithms; outside them it is the nearest measurement.
class speed_up_curve {
 public:
  /// `costs` ascends by tokens and is not empty. The second form takes the cost of a decoded token instead of step_ms.
  explicit speed_up_curve(const std::vector<run_cost>& costs) : costs_(costs) {}
  speed_up_curve(const std::vector<run_cost>& costs, double ms_per_decoded_token);
  [[nodiscard]] double at(double tokens) const;

 private:
  std::vector<run_cost> costs_;
};

/// How many tokens of new files can be copied.
struct copy_cover {
  std::uint64_t tokens = 0;          // tokens of the new files
  std::uint64_t asked = 0;           // tokens of programs that a model chooses; 0 if no programs were examined
  std::vector<std::uint32_t> spans;  // lengths of the spans

  [[nodiscard]] std::uint64_t copied() const;
  [[nodiscard]] double share() const;
  /// 1 / ((1 - f) + f / s): the speed-up when programs cost nothing but the text they write.
  [[nodiscard]] double bound(const speed_up_curve& s) const;
  /// The same with everything that the model has to choose: the op, numbers and ends of texts.
  [[nodiscard]] double program_bound(const speed_up_curve& s) const;
  copy_cover& operator+=(const copy_cover& o);
};

/// Covers whole lines, as the shortest program copies them.
[[nodiscard]] copy_cover line_cover(const known_edit& e, const std::shared_ptr<const grammar::token_trie>& trie);
/// Covers the greedy longest matches from left to right that have at least `span_min` tokens.
[[nodiscard]] copy_cover token_cover(const known_edit& e, const grammar::token_trie& trie, std::uint32_t span_min);

/// The tokens by which a model writes this program, including its spans, as the actors write it; nullopt when it
/// cannot. `asked` receives how many of them the model has to choose.
std::optional<std::vector<token>> program_tokens(const output_rules& rules, const std::string& program,
                                                 std::uint64_t* asked = nullptr);

/// A model that knows the new file and is wrong about where spans end: each end is off by up to `lines`, at random. It
/// is either sure of an op's numbers or not sure at all.
struct clumsy_model {
  std::uint32_t lines = 0;
  bool plans_anew = false;  // plans the rest again at each op; otherwise it writes one program to its end
  std::uint32_t seed = 0;
  double knows = 0.9;  // how often it is sure of a right op, and unsure of a wrong one
};
/// Returns whether the model's output resolves to the new file. It agrees with a span as long as that continues like
/// the new file, and its anchors name the lines that it means.
[[nodiscard]] bool writes_exactly(const clumsy_model& m, const known_edit& e,
                                  const std::shared_ptr<const grammar::token_trie>& trie, const copy_options& how);

/// The microseconds that a row's mask takes, by position in the grammar.
struct mask_cost {
  std::string place;
  double first_us = 0;  // when the grammar state is new
  double again_us = 0;
};
[[nodiscard]] std::vector<mask_cost> price_masks(const std::shared_ptr<const grammar::token_trie>& trie);

}  // namespace redline::studies
