#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redline::api {

/// The id of a stream's event. It contains all that any server needs, with the same request, to send exactly what
/// follows. It is not signed: a client that forges an id changes only its own answer.
struct event_id {
  /// What was already sent of one choice.
  struct position {
    std::uint64_t text_bytes = 0;    // includes reasoning, call names and arguments, in order
    std::uint64_t tokens_count = 0;  // tokens with log-probabilities
    std::uint32_t text_digest = 0;   // digest of the text bytes
    std::uint32_t numerics = 0;      // numerics of these bytes; 0 means the server's own
    bool is_begun = false;           // whether its first event was sent
    bool is_over = false;            // whether its last event was sent
    bool operator==(const position&) const = default;
  };
  std::uint64_t response_high = 0;  // see response_id
  std::uint64_t response_low = 0;
  std::int64_t created_seconds = 0;
  std::uint64_t request_digest = 0;  // the request without fields that only help to resume it
  std::uint32_t model_digest = 0;    // all else that the answer depends on, except numerics
  std::vector<position> choices;
  bool usage_sent = false;
  bool operator==(const event_id&) const = default;

  /// True if the usage is still to be sent, which needs all answers.
  [[nodiscard]] bool wants_usage(bool include_usage) const { return include_usage && !usage_sent; }
  /// True if only the final "done" of the stream is left to send.
  [[nodiscard]] bool is_all(bool include_usage) const;
  /// The seed for a request without one.
  [[nodiscard]] std::uint64_t seed() const { return response_high ^ response_low; }
};

inline constexpr std::size_t event_id_chars_max = 4096;

/// Letters, digits, '-' and '_'.
std::string to_text(const event_id& id);
/// nullopt for text that `to_text` does not produce.
std::optional<event_id> parse_event_id(std::string_view text);

}  // namespace redline::api
