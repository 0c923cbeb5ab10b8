#include "actors/cli/help/suggestion.hpp"

#include <algorithm>

namespace redline::actors::cli {
namespace {

constexpr std::size_t word_bytes_max = 64;  // the work grows with the square
constexpr std::size_t prefix_bytes_min = 3;

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

std::optional<std::string> suggest(const std::string& word, const std::vector<std::string>& names) {
  const auto letters = [](std::string_view name) {
    return name.substr(std::min(name.find_first_not_of('-'), name.size()));
  };
  const std::string_view meant = letters(word);
  if (meant.empty() || meant.size() > word_bytes_max) return std::nullopt;
  const std::string* nearest = nullptr;
  std::size_t least = meant.size() / 3 + 1;  // a third of it may be wrong, of a short word one letter
  for (const std::string& name : names) {
    const std::size_t distance = edit_distance(meant, letters(name));
    if (distance > least || (distance == least && nearest != nullptr) || distance >= letters(name).size()) continue;
    nearest = &name;
    least = distance;
  }
  if (nearest != nullptr) return *nearest;
  if (meant.size() < prefix_bytes_min) return std::nullopt;
  const auto begins = [&](const std::string& name) { return letters(name).starts_with(meant); };
  const auto at = std::find_if(names.begin(), names.end(), begins);
  if (at == names.end()) return std::nullopt;
  return *at;
}

}  // namespace redline::actors::cli
