#include "actors/http/routing/paths.hpp"

#include <algorithm>

#include "actors/http/fields/field_reader.hpp"

namespace redline::actors {

std::optional<std::vector<std::string>> match_path(std::string_view pattern, std::string_view path) {
  std::vector<std::string> captures;
  while (!pattern.empty()) {
    const auto open = pattern.find('{');
    if (open == std::string_view::npos) break;
    if (path.substr(0, open) != pattern.substr(0, open)) return std::nullopt;
    path.remove_prefix(open);
    pattern.remove_prefix(open);
    const bool takes_all = pattern == "{*}";
    const auto end = takes_all ? path.size() : std::min(path.find('/'), path.size());
    if (end == 0) return std::nullopt;
    captures.emplace_back(path.substr(0, end));
    path.remove_prefix(end);
    pattern.remove_prefix(takes_all ? 3 : 2);
  }
  return path == pattern ? std::optional(std::move(captures)) : std::nullopt;
}

std::string_view without_version(std::string_view path) {
  if (path == "/v1") return "/";
  return path.starts_with("/v1/") ? path.substr(3) : path;
}

std::string tidy_path(std::string_view path) {
  std::string tidy(path);
  tidy.erase(std::unique(tidy.begin(), tidy.end(), [](char a, char b) { return a == '/' && b == '/'; }), tidy.end());
  if (tidy.size() > 1 && tidy.back() == '/') tidy.pop_back();
  return tidy;
}

std::string_view nearest_path(std::string_view path, std::span<const std::string_view> patterns) {
  std::vector<std::string_view> plain;
  std::copy_if(patterns.begin(), patterns.end(), std::back_inserter(plain),
               [](std::string_view one) { return one.find('{') == std::string_view::npos && one != "/"; });
  if (const auto meant = api::nearest(path, plain); !meant.empty()) return meant;
  // The path may have a prefix, as after a base URL given twice, or a suffix.
  const auto is_part = [&](std::string_view one) { return path.ends_with(one) || path.starts_with(one); };
  const auto longest = std::max_element(plain.begin(), plain.end(), [&](auto a, auto b) {
    return std::pair(is_part(a), a.size()) < std::pair(is_part(b), b.size());
  });
  return longest != plain.end() && is_part(*longest) ? *longest : std::string_view();
}

}  // namespace redline::actors
