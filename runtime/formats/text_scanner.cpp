#include "runtime/formats/text_scanner.hpp"

#include <algorithm>

namespace redline::formats {

std::size_t text_scanner::first(std::string_view needle, std::size_t begin, std::size_t end) {
  end = std::min(end, text_.size());
  if (begin > end) return nowhere;
  const std::size_t found = text_.substr(begin, end - begin).find(needle);
  bytes_read_ += found == nowhere ? end - begin : found + needle.size();
  return found == nowhere ? nowhere : begin + found;
}

// Not string_view::rfind, which compares the whole needle at every position.
std::size_t text_scanner::last(std::string_view needle, std::size_t begin, std::size_t end) {
  end = std::min(end, text_.size());
  if (needle.empty() || begin > end || end - begin < needle.size()) return nowhere;
  for (std::size_t i = end - needle.size() + 1; i > begin;) {
    --i;
    ++bytes_read_;
    if (text_[i] != needle.front()) continue;
    ++bytes_read_;
    if (text_.substr(i, needle.size()) == needle) return i;
  }
  return nowhere;
}

std::size_t text_scanner::before_whitespace(std::size_t begin, std::size_t end) {
  constexpr std::string_view whitespace = " \t\r\n";
  while (end > begin && whitespace.find(text_[end - 1]) != nowhere) {
    --end;
    ++bytes_read_;
  }
  return end;
}

}  // namespace redline::formats
