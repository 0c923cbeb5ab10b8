#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redline::api {

/// The id of an event of a stream: all that any server needs to send exactly what follows it, given the same request
/// again. Not signed: a client that forges one changes only what it is sent itself.
struct event_id {
  /// What was sent of one choice.
  struct position {
    std::uint64_t text_bytes = 0;    // of reasoning, names of calls and arguments too, in the order in which they came
    std::uint64_t tokens_count = 0;  // with their log-probabilities
    std::uint32_t text_digest = 0;   // of these bytes
    std::uint32_t numerics = 0;      // by which they were computed; 0: by those of the server
    bool is_begun = false;           // its first event was sent,
    bool is_over = false;            // and its last one
    bool operator==(const position&) const = default;
  };
  std::uint64_t response_high = 0;  // see response_id
  std::uint64_t response_low = 0;
  std::int64_t created_seconds = 0;
  std::uint64_t request_digest = 0;  // of the request without what only helps to resume it
  std::uint32_t model_digest = 0;    // of what the answer depends on beside the request and the numerics
  std::vector<position> choices;
  bool usage_sent = false;
  bool operator==(const event_id&) const = default;

  /// The usage is still to be sent, and so all answers are needed.
  [[nodiscard]] bool wants_usage(bool include_usage) const { return include_usage && !usage_sent; }
  /// Nothing is left but the word that the stream is done.
  [[nodiscard]] bool is_all(bool include_usage) const;
  /// The seed of a request that named none.
  [[nodiscard]] std::uint64_t seed() const { return response_high ^ response_low; }
};

inline constexpr std::size_t event_id_chars_max = 4096;

/// Letters, digits, '-' and '_'.
std::string to_text(const event_id& id);
/// Nothing for what `to_text` does not give.
std::optional<event_id> parse_event_id(std::string_view text);

}  // namespace redline::api
