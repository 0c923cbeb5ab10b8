#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace redline::gguf {

/// The name of one file of a split model: "x-00001-of-00003.gguf".
struct split_name {
  std::string stem;  // "x"
  std::uint32_t number = 1;
  std::uint32_t count = 1;

  [[nodiscard]] std::string of(std::uint32_t part) const;
};
/// nullopt if the path has no such ending.
std::optional<split_name> parse_split_name(std::string_view path);

}  // namespace redline::gguf
