#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace redline::utf8 {

/// The first character of some bytes, or the reason there is none. UTF-8 as Unicode defines it: no surrogates, no
/// overlong forms, nothing above U+10FFFF.
struct unit {
  enum class kind : std::uint8_t {
    character,   // one well-formed character
    invalid,     // bytes that can never become one, whatever follows
    incomplete,  // the bytes end inside what may still become a character
  };
  kind what = kind::character;
  /// Its length in bytes, 1 to 4. An invalid unit is a maximal subpart as in the Unicode standard, section 3.9, so that
  /// replacing each by one U+FFFD gives the same result as browsers and Python.
  std::size_t size_bytes = 0;
};

/// `bytes` must not be empty.
[[nodiscard]] unit first_unit(std::string_view bytes);

/// Length of the longest prefix that is well-formed.
[[nodiscard]] std::size_t valid_prefix_bytes(std::string_view bytes);

struct code_point {
  char32_t value = 0;
  std::size_t size_bytes = 0;
};
/// The code point at byte `at` < text.size(). A byte that does not begin a well-formed character counts as its own code
/// point, stray_byte + byte, so that any text can be split by `decode` and restored by `append` unchanged.
[[nodiscard]] code_point decode(std::string_view text, std::size_t at);
void append(std::string& out, char32_t code);
constexpr char32_t stray_byte = 0xDC00;  // a surrogate, which well-formed text never contains

[[nodiscard]] std::size_t count_code_points(std::string_view text);
/// Byte offset of every code point, then text.size().
[[nodiscard]] std::vector<std::size_t> code_point_offsets(std::string_view text);

/// A copy with every invalid or incomplete unit replaced by U+FFFD: always well-formed, as JSON requires.
[[nodiscard]] std::string sanitize(std::string_view bytes);

/// Passes a byte stream on without ending a piece inside a character. The joined pieces equal the stream (or `sanitize`
/// of it when replacing) wherever it was cut. Delays at most three bytes.
class stream {
 public:
  enum class invalid_bytes : std::uint8_t { keep, replace };

  explicit stream(invalid_bytes policy = invalid_bytes::replace) : policy_(policy) {}

  /// Returns what can be shown after these bytes.
  [[nodiscard]] std::string feed(std::string_view bytes);
  /// Ends the stream: returns the delayed bytes of an incomplete character.
  [[nodiscard]] std::string flush();
  [[nodiscard]] std::size_t held_bytes() const { return held_.size(); }

 private:
  invalid_bytes policy_;
  std::string held_;
};

}  // namespace redline::utf8
