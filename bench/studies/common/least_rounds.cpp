#include "bench/studies/common/least_rounds.hpp"

#include <map>
#include <vector>

#include "bench/studies/common/answer_replay.hpp"

namespace redline::studies {
namespace {

/// The suffix automaton of a text: its states are the sets of end positions of the text's runs (Blumer and others, "The
/// smallest automaton recognizing the subwords of a text", 1985).
class suffix_automaton {
 public:
  static constexpr std::uint32_t root = 0;
  static constexpr std::uint32_t none = ~0U;

  explicit suffix_automaton(std::size_t text_count) {
    states_.reserve(2 * text_count + 1);
    add({});
  }

  void append(token t) {
    const std::uint32_t made = add({.length = states_[last_].length + 1, .first_end = count_++});
    std::uint32_t p = last_;
    for (; p != none && !states_[p].next.contains(t); p = states_[p].link) states_[p].next[t] = made;
    states_[made].link = p == none ? root : suffix_state(p, t);
    last_ = made;
  }
  /// The state of a run that is longer by `t`, or `none`.
  [[nodiscard]] std::uint32_t follow(std::uint32_t from, token t) const {
    const auto found = states_[from].next.find(t);
    return found == states_[from].next.end() ? none : found->second;
  }
  /// The index of the last token of the first occurrence of the runs of a state.
  [[nodiscard]] std::size_t first_end(std::uint32_t of) const { return states_[of].first_end; }

 private:
  struct state {
    std::size_t length = 0;
    std::size_t first_end = 0;
    std::uint32_t link = none;
    std::map<token, std::uint32_t> next{};
  };
  std::uint32_t add(state s) {
    states_.push_back(std::move(s));
    return static_cast<std::uint32_t>(states_.size() - 1);
  }
  /// The state whose longest run is the longest one of `p` and then `t`; it is split off if it does not exist yet.
  std::uint32_t suffix_state(std::uint32_t p, token t) {
    const std::uint32_t q = states_[p].next[t];
    if (states_[q].length == states_[p].length + 1) return q;
    state shorter = states_[q];
    shorter.length = states_[p].length + 1;
    const std::uint32_t split = add(std::move(shorter));
    for (; p != none && follow(p, t) == q; p = states_[p].link) states_[p].next[t] = split;
    states_[q].link = split;
    return split;
  }

  std::vector<state> states_;
  std::uint32_t last_ = root;
  std::size_t count_ = 0;
};

}  // namespace

std::uint32_t least_rounds(std::span<const token> prompt, std::span<const token> answer, double model_right) {
  suffix_automaton runs(prompt.size() + answer.size());
  for (const token t : prompt) runs.append(t);
  for (const token t : answer) runs.append(t);
  // The end of the longest run from `at` that begins earlier too.
  const auto run_end = [&](std::size_t at) {
    for (std::uint32_t state = suffix_automaton::root; at < answer.size(); ++at) {
      state = runs.follow(state, answer[at]);
      if (runs.first_end(state) >= prompt.size() + at) break;
    }
    return at;
  };
  std::uint32_t rounds = answer.empty() ? 0 : 1;
  for (std::size_t at = 1; at < answer.size(); ++at, ++rounds) {
    at = run_end(at);
    while (at + 1 < answer.size() && model_is_right(at, answer.size(), model_right)) at = run_end(at + 1);
  }
  return rounds;
}

}  // namespace redline::studies
