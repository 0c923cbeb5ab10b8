#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redline::actors::cli::lsp {

/// One item of a stream in the Language Server Protocol's base protocol.
struct frame {
  enum class kind : std::uint8_t {
    message,  // text: the body
    refused,  // text: the reason; the body was skipped
    broken,   // text: the reason; message boundaries are lost, so reading ends
  };
  kind what = kind::message;
  std::string text;
  bool operator==(const frame&) const = default;
};

/// Splits a byte stream into messages: header lines, an empty line, and as many bytes as Content-Length says. Buffers
/// at most one message.
class frame_reader {
 public:
  static constexpr std::size_t header_bytes_max = 4096;  // all header lines of one message
  static constexpr std::size_t body_bytes_max = 64 << 20;

  explicit frame_reader(std::size_t bytes_max = body_bytes_max) : bytes_max_(bytes_max) {}

  /// Returns the frames that these bytes complete.
  [[nodiscard]] std::vector<frame> feed(std::string_view bytes);
  /// True if a message is incomplete, so the stream must not end here.
  [[nodiscard]] bool is_inside() const { return in_body_ || header_bytes_ > 0; }

 private:
  /// Returns the reason if the stream cannot be followed after this line.
  [[nodiscard]] std::optional<std::string> take_line(std::string_view line);
  [[nodiscard]] std::optional<std::string> begin_body();

  std::size_t bytes_max_;
  std::string line_;
  std::size_t header_bytes_ = 0;
  std::optional<std::uint64_t> length_;
  std::string why_refused_;  // empty if the body is wanted
  bool in_body_ = false;
  bool broken_ = false;
  std::uint64_t left_ = 0;  // remaining bytes of the body
  std::string body_;
};

/// A message with its header, as sent.
[[nodiscard]] std::string frame_of(std::string_view body);

}  // namespace redline::actors::cli::lsp
