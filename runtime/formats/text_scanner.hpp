#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace redline::formats {

constexpr std::size_t nowhere = std::string_view::npos;

/// Searches a text for short constant strings and counts the bytes that it looked at, so that tests can check that the
/// work is linear. The text must outlive the scanner.
class text_scanner {
 public:
  explicit text_scanner(std::string_view text) : text_(text) {}

  [[nodiscard]] std::string_view text() const { return text_; }
  /// The position of the first or the last `needle` that lies within [begin, end), or `nowhere`.
  [[nodiscard]] std::size_t first(std::string_view needle, std::size_t begin, std::size_t end);
  [[nodiscard]] std::size_t last(std::string_view needle, std::size_t begin, std::size_t end);
  /// The position after the whitespace before `end`, not before `begin`.
  [[nodiscard]] std::size_t before_whitespace(std::size_t begin, std::size_t end);
  [[nodiscard]] std::uint64_t bytes_read() const { return bytes_read_; }

 private:
  std::string_view text_;
  std::uint64_t bytes_read_ = 0;
};

}  // namespace redline::formats
