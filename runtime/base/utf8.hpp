#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace redline::text {

/// What stands at the start of some bytes. UTF-8 as Unicode defines it: no surrogates, no overlong forms, nothing above
/// U+10FFFF.
struct utf8_unit {
  enum class kind : std::uint8_t {
    character,   // one well-formed character
    invalid,     // bytes that can never become one, whatever follows
    incomplete,  // the bytes end inside what may still become a character
  };
  kind what = kind::character;
  /// Bytes it takes, 1 to 4. An invalid unit is a maximal subpart as in the Unicode standard, section 3.9, so that
  /// replacing each by one U+FFFD gives what browsers and Python give.
  std::size_t size_bytes = 0;
};

/// `bytes` must not be empty.
[[nodiscard]] utf8_unit first_unit(std::string_view bytes);

/// Length of the longest prefix that is well-formed.
[[nodiscard]] std::size_t valid_prefix_bytes(std::string_view bytes);

/// A copy with every invalid or incomplete unit replaced by U+FFFD: always well-formed, as JSON needs it.
[[nodiscard]] std::string sanitize(std::string_view bytes);

/// Passes a byte stream on without ever ending a piece inside a character. The pieces joined are the stream (or,
/// replacing, `sanitize` of it) however it was cut. Holds back at most three bytes.
class utf8_stream {
 public:
  enum class invalid_bytes : std::uint8_t { keep, replace };

  explicit utf8_stream(invalid_bytes policy = invalid_bytes::replace) : policy_(policy) {}

  /// What can be shown after these bytes.
  [[nodiscard]] std::string feed(std::string_view bytes);
  /// The end of the stream: what was held back, which is an incomplete character.
  [[nodiscard]] std::string flush();
  [[nodiscard]] std::size_t held_bytes() const { return held_.size(); }

 private:
  invalid_bytes policy_;
  std::string held_;
};

}  // namespace redline::text
