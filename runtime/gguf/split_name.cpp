#include "runtime/gguf/split_name.hpp"

#include <algorithm>
#include <charconv>

namespace redline::gguf {
namespace {

constexpr std::string_view ending = ".gguf";
constexpr std::string_view between = "-of-";
constexpr std::size_t digits = 5;

std::string five_digits(std::uint32_t n) {
  std::string text = std::to_string(n);
  return std::string(digits - std::min(digits, text.size()), '0') + text;
}

std::optional<std::uint32_t> number_in(std::string_view text) {
  std::uint32_t n = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return n;
}

}  // namespace

std::string split_name::of(std::uint32_t part) const {
  return stem + "-" + five_digits(part) + std::string(between) + five_digits(count) + std::string(ending);
}

std::optional<split_name> parse_split_name(std::string_view path) {
  constexpr std::size_t tail = 1 + digits + between.size() + digits + ending.size();
  if (path.size() <= tail || !path.ends_with(ending)) return std::nullopt;
  const std::string_view end = path.substr(path.size() - tail);
  if (end[0] != '-' || end.substr(1 + digits, between.size()) != between) return std::nullopt;
  const auto number = number_in(end.substr(1, digits));
  const auto count = number_in(end.substr(1 + digits + between.size(), digits));
  if (!number || !count || *number < 1 || *number > *count) return std::nullopt;
  return split_name{std::string(path.substr(0, path.size() - tail)), *number, *count};
}

}  // namespace redline::gguf
