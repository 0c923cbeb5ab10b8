#include "actors/editing/kv_estimate.hpp"

#include <algorithm>
#include <utility>

#include "runtime/text/token_diff.hpp"

namespace redline::actors {
namespace {

// A few tokens between two changes are cheaper to compute again, in the same run, than to keep as pieces of their own.
constexpr std::uint32_t kept_min = 16;

std::vector<token> joined(std::vector<token> first, const std::vector<token>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace

log_step kv_estimate::follow(std::vector<token> prompt, const std::vector<token>& behind) {
  const std::size_t count = prompt.size();
  return go_to(joined(std::move(prompt), behind), count, count);
}

log_step kv_estimate::expect(std::vector<token> prompt, const std::vector<token>& behind) {
  const std::size_t count = prompt.size();
  return go_to(joined(std::move(prompt), behind), count, count + behind.size());
}

/// The log becomes the beginning of `text`: as much of it as has KV, within the two counts.
log_step kv_estimate::go_to(std::vector<token> text, std::size_t count_min, std::size_t count_max) {
  log_step next;
  const auto same = std::mismatch(log().begin(), log().end(), text.begin(), text.end()).first;
  auto kept_count = static_cast<std::size_t>(same - log().begin());
  // Models attend to a sequence's first token from everywhere: without it no KV is kept.
  if (kv::keeps_later(policy_) && kept_count > 0) {
    kept_count = log_count_;
    for (auto& edit : text::diff_tokens(text_, text, kept_min)) {
      if (edit.at >= std::min(kept_count, count_max)) break;
      const std::size_t end = edit.at + edit.insert.size();
      // What follows is too short for a splice.
      if (edit.at + edit.remove_count + kept_min > kept_count || end + kept_min > count_max) {
        kept_count = edit.at;
        break;
      }
      kept_count += edit.insert.size() - edit.remove_count;
      // New tokens see what is before them, as they would if everything were computed again. Those after them were
      // computed with the old ones before them.
      if (exact_count_ >= edit.at) exact_count_ = static_cast<std::uint32_t>(end);
      next.splices.push_back({edit.at, edit.remove_count, std::move(edit.insert), policy_});
    }
  }
  const auto count = static_cast<std::uint32_t>(std::clamp(kept_count, count_min, count_max));
  next.is_new = !next.splices.empty() || count != log_count_ || count > kept_count;
  text_ = std::move(text);
  log_count_ = count;
  // The last token is always computed. What is computed after stale tokens has seen them.
  if (count == 0 || std::min<std::size_t>(kept_count, count - 1) <= exact_count_) become_exact();
  return next;
}

void kv_estimate::note_exact(std::uint32_t count) { exact_count_ = std::min(count, log_count_); }

kv_state kv_estimate::state() const { return {.exact = exact_count_, .stale = log_count_ - exact_count_}; }

}  // namespace redline::actors
