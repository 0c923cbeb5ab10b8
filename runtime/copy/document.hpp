#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace redline::copy {

/// The unit of a span's numbers.
enum class unit : std::uint8_t { lines, tokens, last_ };

/// A file that programs copy from: bytes, divided into lines and optionally into tokens. Units are numbered from 1.
/// Only a line feed ends a line; the last line may lack one. An empty file has no units.
class document {
 public:
  explicit document(std::string bytes);
  /// token_ends: the byte offset after each token, ascending; the last one must be bytes.size().
  document(std::string bytes, std::vector<std::uint32_t> token_ends);

  [[nodiscard]] const std::string& bytes() const { return bytes_; }
  [[nodiscard]] std::uint32_t count(unit of) const { return static_cast<std::uint32_t>(ends_of(of).size()); }
  /// The units from first to last, inclusive; 1 <= first <= last <= count(of).
  [[nodiscard]] std::string_view slice(unit of, std::uint32_t first, std::uint32_t last) const;
  /// How many whole units, starting at `first`, fit into the next `bytes` bytes.
  [[nodiscard]] std::uint32_t count_whole(unit of, std::uint32_t first, std::size_t bytes) const;

 private:
  /// The byte offset where the unit begins.
  [[nodiscard]] std::uint32_t begin_of(unit of, std::uint32_t number) const {
    return number == 1 ? 0 : ends_of(of)[number - 2];
  }
  [[nodiscard]] const std::vector<std::uint32_t>& ends_of(unit of) const {
    return of == unit::lines ? line_ends_ : token_ends_;
  }

  std::string bytes_;
  std::vector<std::uint32_t> line_ends_;
  std::vector<std::uint32_t> token_ends_;
};

}  // namespace redline::copy
