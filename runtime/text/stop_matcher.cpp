#include "runtime/text/stop_matcher.hpp"

#include <algorithm>
#include <utility>

namespace redline::text {
namespace {

std::vector<std::size_t> borders_of(std::string_view stop) {
  std::vector<std::size_t> borders(stop.size() + 1, 0);
  for (std::size_t n = 1, border = 0; n < stop.size(); ++n) {
    while (border > 0 && stop[n] != stop[border]) border = borders[border];
    if (stop[n] == stop[border]) ++border;
    borders[n + 1] = border;
  }
  return borders;
}

}  // namespace

result<stop_matcher> stop_matcher::make(std::vector<std::string> stops) {
  if (stops.size() > stops_max) {
    return failure{errc::invalid_argument, "stop: expected at most " + std::to_string(stops_max) + " strings, found " +
                                               std::to_string(stops.size())};
  }
  stop_matcher out;
  for (std::size_t i = 0; i < stops.size(); ++i) {
    if (stops[i].empty() || stops[i].size() > stop_bytes_max) {
      return failure{errc::invalid_argument, "stop: string " + std::to_string(i) + " has " +
                                                 std::to_string(stops[i].size()) + " bytes, expected 1 to " +
                                                 std::to_string(stop_bytes_max)};
    }
    std::vector<std::size_t> borders = borders_of(stops[i]);
    out.patterns_.push_back({std::move(stops[i]), std::move(borders)});
  }
  return out;
}

void stop_matcher::advance(pattern& p, char byte) {
  while (p.matching > 0 && p.stop[p.matching] != byte) p.matching = p.borders[p.matching];
  if (p.stop[p.matching] == byte) ++p.matching;
}

std::string stop_matcher::feed(std::string_view piece) {
  if (matched_) return {};
  std::string text = std::exchange(held_, {});
  text.reserve(text.size() + piece.size());
  for (const char byte : piece) {
    text.push_back(byte);
    std::size_t longest = 0;
    for (std::size_t i = 0; i < patterns_.size(); ++i) {
      pattern& p = patterns_[i];
      advance(p, byte);
      if (p.matching < p.stop.size() || p.stop.size() <= longest) continue;
      longest = p.stop.size();
      matched_ = i;
    }
    if (matched_) {
      text.resize(text.size() - longest);
      return text;
    }
  }
  std::size_t holding = 0;
  for (const pattern& p : patterns_) holding = std::max(holding, p.matching);
  held_ = text.substr(text.size() - holding);
  text.resize(text.size() - holding);
  return text;
}

std::string stop_matcher::finish() {
  for (pattern& p : patterns_) p.matching = 0;
  return std::exchange(held_, {});
}

}  // namespace redline::text
