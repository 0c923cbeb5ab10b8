#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redline::actors::cli::lsp {

/// What a stream of the Language Server Protocol's base protocol holds at a place.
struct frame {
  enum class kind : std::uint8_t {
    message,  // text: its body
    refused,  // text: why; its body was left out
    broken,   // text: why nobody can tell where the next message begins; nothing after it is read
  };
  kind what = kind::message;
  std::string text;
  bool operator==(const frame&) const = default;
};

/// Splits a byte stream into messages: header lines, an empty line, and as many bytes as Content-Length says. Holds one
/// message at most.
class frame_reader {
 public:
  static constexpr std::size_t header_bytes_max = 4096;  // of one message, all lines together
  static constexpr std::size_t body_bytes_max = 64 << 20;

  explicit frame_reader(std::size_t bytes_max = body_bytes_max) : bytes_max_(bytes_max) {}

  /// What these bytes complete.
  [[nodiscard]] std::vector<frame> feed(std::string_view bytes);
  /// The stream ended in the middle of a message.
  [[nodiscard]] bool is_inside() const { return in_body_ || header_bytes_ > 0; }

 private:
  /// Why the stream cannot be followed after this line.
  [[nodiscard]] std::optional<std::string> take_line(std::string_view line);
  [[nodiscard]] std::optional<std::string> begin_body();

  std::size_t bytes_max_;
  std::string line_;
  std::size_t header_bytes_ = 0;
  std::optional<std::uint64_t> length_;
  std::string why_refused_;  // empty: the body is kept
  bool in_body_ = false;
  bool broken_ = false;
  std::uint64_t left_ = 0;  // of the body
  std::string body_;
};

/// A message as it is sent.
[[nodiscard]] std::string frame_of(std::string_view body);

}  // namespace redline::actors::cli::lsp
