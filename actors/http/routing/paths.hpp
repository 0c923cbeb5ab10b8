#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace redline::actors {

/// The text for each {} of the pattern: one segment of the path, or all the rest for a {*} at its end. None is empty.
std::optional<std::vector<std::string>> match_path(std::string_view pattern, std::string_view path);

/// The path without a leading /v1.
std::string_view without_version(std::string_view path);

/// The path with repeated slashes merged and without one at its end.
std::string tidy_path(std::string_view path);

/// The pattern without captures that the path was most likely meant to be; empty if none is near.
std::string_view nearest_path(std::string_view path, std::span<const std::string_view> patterns);

}  // namespace redline::actors
