#include "runtime/text/line_diff.hpp"

#include <algorithm>

namespace redline::text {
namespace {

using lines = std::vector<std::string_view>;

void append(std::vector<diff_line>& out, diff_line::kind what, const lines& from, std::ptrdiff_t begin,
            std::ptrdiff_t end) {
  for (std::ptrdiff_t i = begin; i < end; ++i) out.push_back({what, from[static_cast<std::size_t>(i)]});
}

/// Myers' greedy search over diagonals; each round's frontier is kept for walking back.
void search(const lines& a, const lines& b, std::ptrdiff_t differences_max, std::vector<diff_line>& out) {
  const auto n = static_cast<std::ptrdiff_t>(a.size());
  const auto m = static_cast<std::ptrdiff_t>(b.size());
  const std::ptrdiff_t max = std::min(n + m, differences_max);
  std::vector<std::ptrdiff_t> v(static_cast<std::size_t>(2 * max + 3), 0);
  const auto at = [&](std::vector<std::ptrdiff_t>& f, std::ptrdiff_t k) -> std::ptrdiff_t& {
    return f[static_cast<std::size_t>(k + max + 1)];
  };
  std::vector<std::vector<std::ptrdiff_t>> trace;
  for (std::ptrdiff_t d = 0; d <= max; ++d) {
    trace.push_back(v);
    for (std::ptrdiff_t k = -d; k <= d; k += 2) {
      const bool down = k == -d || (k != d && at(v, k - 1) < at(v, k + 1));
      std::ptrdiff_t x = down ? at(v, k + 1) : at(v, k - 1) + 1;
      while (x < n && x - k < m && x - k >= 0 && a[static_cast<std::size_t>(x)] == b[static_cast<std::size_t>(x - k)])
        ++x;
      at(v, k) = x;
      if (x < n || x - k < m) continue;
      std::vector<diff_line> reversed;
      std::ptrdiff_t end = n;
      std::ptrdiff_t y = m;
      for (std::ptrdiff_t step = d; step >= 0; --step) {
        auto& f = trace[static_cast<std::size_t>(step)];
        const std::ptrdiff_t diagonal = end - y;
        const bool came_down = diagonal == -step || (diagonal != step && at(f, diagonal - 1) < at(f, diagonal + 1));
        const std::ptrdiff_t from_k = came_down ? diagonal + 1 : diagonal - 1;
        const std::ptrdiff_t from_x = step == 0 ? 0 : at(f, from_k);
        const std::ptrdiff_t from_y = step == 0 ? 0 : from_x - from_k;
        while (end > from_x && y > from_y && (step == 0 || end - 1 >= (came_down ? from_x : from_x + 1))) {
          reversed.push_back({diff_line::kind::kept, a[static_cast<std::size_t>(--end)]});
          --y;
        }
        if (step == 0) break;
        if (came_down)
          reversed.push_back({diff_line::kind::added, b[static_cast<std::size_t>(--y)]});
        else
          reversed.push_back({diff_line::kind::removed, a[static_cast<std::size_t>(--end)]});
      }
      out.insert(out.end(), reversed.rbegin(), reversed.rend());
      return;
    }
  }
  append(out, diff_line::kind::removed, a, 0, n);
  append(out, diff_line::kind::added, b, 0, m);
}

}  // namespace

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const auto end = text.find('\n');
    const std::size_t size = end == std::string_view::npos ? text.size() : end + 1;
    out.push_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return out;
}

std::vector<diff_line> diff_lines(std::string_view before, std::string_view after, std::ptrdiff_t differences_max) {
  lines a = split_lines(before);
  lines b = split_lines(after);
  std::size_t head = 0;
  while (head < a.size() && head < b.size() && a[head] == b[head]) ++head;
  std::size_t tail = 0;
  while (tail < a.size() - head && tail < b.size() - head && a[a.size() - 1 - tail] == b[b.size() - 1 - tail]) ++tail;

  std::vector<diff_line> out;
  append(out, diff_line::kind::kept, a, 0, static_cast<std::ptrdiff_t>(head));
  const lines middle_a(a.begin() + static_cast<std::ptrdiff_t>(head), a.end() - static_cast<std::ptrdiff_t>(tail));
  const lines middle_b(b.begin() + static_cast<std::ptrdiff_t>(head), b.end() - static_cast<std::ptrdiff_t>(tail));
  search(middle_a, middle_b, differences_max, out);
  append(out, diff_line::kind::kept, a, static_cast<std::ptrdiff_t>(a.size() - tail),
         static_cast<std::ptrdiff_t>(a.size()));
  return out;
}

}  // namespace redline::text
