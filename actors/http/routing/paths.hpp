#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace redline::actors {

/// What stands for each {} of the pattern: one segment of the path, or for {*} at its end all the rest. None is empty.
std::optional<std::vector<std::string>> match_path(std::string_view pattern, std::string_view path);

/// The path without /v1 before it.
std::string_view without_version(std::string_view path);

/// The path with one slash where there are several, and none at its end.
std::string tidy_path(std::string_view path);

/// The pattern that the path most likely was meant to be, without those that have captures; empty when none is near.
std::string_view nearest_path(std::string_view path, std::span<const std::string_view> patterns);

}  // namespace redline::actors
