#include "actors/cli/help/suggestion.hpp"

#include <algorithm>

#include "runtime/base/edit_distance.hpp"

namespace redline::actors::cli {
namespace {

constexpr std::size_t word_bytes_max = 64;  // the work grows quadratically
constexpr std::size_t prefix_bytes_min = 3;

}  // namespace

std::optional<std::string> suggest(const std::string& word, const std::vector<std::string>& names) {
  const auto letters = [](std::string_view name) {
    return name.substr(std::min(name.find_first_not_of('-'), name.size()));
  };
  const std::string_view meant = letters(word);
  if (meant.empty() || meant.size() > word_bytes_max) return std::nullopt;
  const std::string* nearest = nullptr;
  std::size_t least = meant.size() / 3 + 1;  // a third may be wrong; in a short word, one letter
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
