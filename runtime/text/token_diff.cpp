#include "runtime/text/token_diff.hpp"

#include <algorithm>
#include <optional>

namespace redline::text {
namespace {

using tokens = std::span<const token>;

// The trace of the search is quadratic in the differences: this many take four megabytes.
constexpr std::int32_t edits_max = 1024;
constexpr std::size_t hunks_max = 64;

/// Tokens [before, before + removed) of one sequence correspond to [after, after + added) of the other.
struct hunk {
  std::int32_t before = 0;
  std::int32_t after = 0;
  std::int32_t removed = 0;
  std::int32_t added = 0;
};

/// The furthest position on each diagonal with `steps` differences: index k + steps of frontier k.
using frontier = std::vector<std::int32_t>;

std::int32_t get(const frontier& f, std::int32_t k) {
  const auto i = k + static_cast<std::int32_t>(f.size() / 2);
  return i < 0 || i >= static_cast<std::int32_t>(f.size()) ? -1 : f[static_cast<std::size_t>(i)];
}

/// Where a step onto diagonal k starts on it: by removing a token (from k - 1) or adding one (from k + 1).
struct step_onto {
  bool adds = false;
  std::int32_t x = 0;
};

step_onto step(const frontier& last, std::int32_t k) {
  const std::int32_t by_adding = get(last, k + 1);
  const std::int32_t by_removing = get(last, k - 1) + 1;
  return by_adding >= by_removing ? step_onto{true, by_adding} : step_onto{false, by_removing};
}

/// All frontiers up to the one that reaches both ends; nullopt if that is too far.
std::optional<std::vector<frontier>> search(tokens a, tokens b) {
  const auto n = static_cast<std::int32_t>(a.size());
  const auto m = static_cast<std::int32_t>(b.size());
  std::vector<frontier> trace;
  for (std::int32_t d = 0; d <= std::min(n + m, edits_max); ++d) {
    frontier now(static_cast<std::size_t>(2 * d + 1), -1);
    for (std::int32_t k = -d; k <= d; k += 2) {
      std::int32_t x = d == 0 ? 0 : step(trace.back(), k).x;
      // Nothing follows beyond either end.
      if (x < 0 || x > n || x - k > m || x - k < 0) continue;
      while (x < n && x - k < m && a[static_cast<std::size_t>(x)] == b[static_cast<std::size_t>(x - k)]) ++x;
      now[static_cast<std::size_t>(k + d)] = x;
    }
    trace.push_back(std::move(now));
    if (get(trace.back(), n - m) == n) return trace;
  }
  return std::nullopt;
}

/// One hunk of a single token for each difference, in order.
std::vector<hunk> walk_back(const std::vector<frontier>& trace, std::int32_t n, std::int32_t m) {
  std::vector<hunk> out;
  std::int32_t k = n - m;
  for (auto d = static_cast<std::int32_t>(trace.size()) - 1; d > 0; --d) {
    const step_onto s = step(trace[static_cast<std::size_t>(d - 1)], k);
    if (s.adds)
      out.push_back({.before = s.x, .after = s.x - k - 1, .removed = 0, .added = 1});
    else
      out.push_back({.before = s.x - 1, .after = s.x - 1 - (k - 1), .removed = 1, .added = 0});
    k = s.adds ? k + 1 : k - 1;
  }
  std::reverse(out.begin(), out.end());
  return out;
}

/// Joins hunks with fewer than kept_min tokens between them.
std::vector<hunk> join(const std::vector<hunk>& all, std::int32_t kept_min) {
  std::vector<hunk> out;
  for (const hunk& h : all) {
    if (out.empty() || h.before - (out.back().before + out.back().removed) >= kept_min) {
      out.push_back(h);
      continue;
    }
    out.back().removed = h.before + h.removed - out.back().before;
    out.back().added = h.after + h.added - out.back().after;
  }
  return out;
}

}  // namespace

std::vector<token_splice> diff_tokens(tokens before, tokens after, std::uint32_t kept_min) {
  const auto head = std::mismatch(before.begin(), before.end(), after.begin(), after.end()).first - before.begin();
  const tokens a = before.subspan(static_cast<std::size_t>(head));
  const tokens b = after.subspan(static_cast<std::size_t>(head));
  const auto tail = std::mismatch(a.rbegin(), a.rend(), b.rbegin(), b.rend()).first - a.rbegin();
  const tokens old_middle = a.first(a.size() - static_cast<std::size_t>(tail));
  const tokens new_middle = b.first(b.size() - static_cast<std::size_t>(tail));
  if (old_middle.empty() && new_middle.empty()) return {};

  const auto n = static_cast<std::int32_t>(old_middle.size());
  const auto m = static_cast<std::int32_t>(new_middle.size());
  std::vector<hunk> hunks{{.before = 0, .after = 0, .removed = n, .added = m}};
  if (n > 0 && m > 0) {
    if (const auto trace = search(old_middle, new_middle)) {
      auto found = join(walk_back(*trace, n, m), static_cast<std::int32_t>(std::max<std::uint32_t>(kept_min, 1)));
      if (found.size() <= hunks_max) hunks = std::move(found);
    }
  }
  std::vector<token_splice> out;
  for (const hunk& h : hunks) {
    const auto inserted = new_middle.subspan(static_cast<std::size_t>(h.after), static_cast<std::size_t>(h.added));
    // Positions refer to the sequence that the previous splices leave: before them it equals the new one.
    out.push_back({static_cast<std::uint32_t>(head + h.after),
                   static_cast<std::uint32_t>(h.removed),
                   {inserted.begin(), inserted.end()}});
  }
  return out;
}

}  // namespace redline::text
