#include "actors/editing/kv_estimate.hpp"

#include <algorithm>
#include <utility>

#include "runtime/document/token_diff.hpp"

namespace redline::actors {
namespace {

// A few tokens between two changes are cheaper computed anew, in the same run, than kept as pieces of their own.
constexpr std::uint32_t kept_min = 16;

}  // namespace

std::vector<log_splice> kv_estimate::follow(std::vector<token> prompt) {
  std::vector<log_splice> told;
  const auto same = std::mismatch(log_.begin(), log_.end(), prompt.begin(), prompt.end()).first;
  std::size_t kept_count = static_cast<std::size_t>(same - log_.begin());
  // Models attend to a sequence's first token from everywhere: without it nothing is kept.
  if (kv::keeps_later(policy_) && kept_count > 0) {
    std::size_t count = log_.size();
    for (auto& edit : text::diff_tokens(log_, prompt, kept_min)) {
      const std::uint32_t end = edit.at + static_cast<std::uint32_t>(edit.insert.size());
      kept_count = edit.at;
      if (edit.at + edit.remove_count + kept_min > count) break;  // what follows is too short for a splice
      count += edit.insert.size() - edit.remove_count;
      kept_count = count;
      // New tokens see what is before them, as they would if everything were computed anew. Those after them were
      // computed with the old ones before them.
      if (exact_count_ >= edit.at) exact_count_ = end;
      told.push_back({edit.at, edit.remove_count, std::move(edit.insert), policy_});
    }
  }
  log_ = std::move(prompt);
  // The last token is computed in any case. What is computed after stale tokens has seen them.
  if (log_.empty() || std::min(kept_count, log_.size() - 1) <= exact_count_) become_exact();
  return told;
}

void kv_estimate::note_exact(std::uint32_t count) {
  exact_count_ = std::min(count, static_cast<std::uint32_t>(log_.size()));
}

kv_state kv_estimate::state() const {
  return {.exact = exact_count_, .stale = static_cast<std::uint32_t>(log_.size()) - exact_count_};
}

}  // namespace redline::actors
