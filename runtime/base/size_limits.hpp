#pragma once

#include <cstdint>

/// The one table of sizes on the way from a client's socket to an actor and back, in bytes. The next stage can carry
/// everything that one stage accepts: the asserts below reject any change that breaks this.
namespace redline::sizes {

// A message between actors, in one process or across the bridge.
inline constexpr std::uint32_t message_bytes_max = 16u << 20;
inline constexpr std::uint32_t string_bytes_max = 8u << 20;  // one string of a message
inline constexpr std::uint32_t array_count_max = 1u << 20;   // values of one array of a message
inline constexpr std::uint32_t envelope_bytes_max = 4096;

// A request: it travels to the gateway in one message.
inline constexpr std::uint32_t http_header_bytes_max = 32u << 10;  // request line and all headers
inline constexpr std::uint32_t http_body_bytes_max = 8u << 20;     // larger ones get 413

// An answer: the gateway sends it in parts of one message each. A larger one is refused, because it can be streamed.
inline constexpr std::uint32_t http_answer_part_bytes_max = 1u << 20;
inline constexpr std::uint64_t http_answer_bytes_max = 64u << 20;

// The contents of a body.
inline constexpr std::uint32_t prompt_text_bytes_max = http_body_bytes_max;  // all prompts or messages together
inline constexpr std::uint32_t edit_file_bytes_max = 1u << 20;               // one file of an edit session
inline constexpr std::uint32_t edit_session_bytes_max = 4u << 20;            // all its files
inline constexpr std::uint64_t edit_memory_bytes_max = 512u << 20;           // all edit sessions, with their tokens

// The memory of requests in progress: bodies while they are read, prompts and answers.
inline constexpr std::uint64_t request_memory_bytes_max = 2048ull << 20;

// The text of tokens given to /detokenize: the answer contains it twice, and an escaped byte takes six.
inline constexpr std::uint32_t spelled_text_bytes_max = 4u << 20;

// A model's header on its way from a worker to a gateway, one part per message. Vocabularies of 250,000 take 15 MiB.
// The whole is one job of a thread pool, which allows a tenant half of its 64 MiB of waiting inputs.
inline constexpr std::uint32_t header_part_bytes_max = 1u << 20;
inline constexpr std::uint64_t header_bytes_max = 32u << 20;

namespace detail {
/// A header "a:b\r\n" takes 5 bytes on the socket and 7 in a message; a long one takes less in a message.
inline constexpr std::uint32_t headers_in_message = 2 * http_header_bytes_max;
inline constexpr std::uint32_t other_fields = 4096;
}  // namespace detail

static_assert(http_body_bytes_max <= string_bytes_max, "a body is one string of a message");
static_assert(http_header_bytes_max <= string_bytes_max, "a path or a header is one string of a message");
static_assert(http_body_bytes_max + detail::headers_in_message + detail::other_fields <= message_bytes_max,
              "a request is one message");
static_assert(http_answer_part_bytes_max <= string_bytes_max &&
                  http_answer_part_bytes_max + detail::headers_in_message + detail::other_fields <= message_bytes_max,
              "a part of an answer is one message");
static_assert(header_part_bytes_max <= string_bytes_max, "a part of a header is one string of a message");
static_assert(prompt_text_bytes_max <= string_bytes_max && prompt_text_bytes_max <= http_body_bytes_max,
              "a text from a body is one string of a message; JSON's escapes never make it longer than the body");
static_assert(edit_file_bytes_max <= edit_session_bytes_max && edit_session_bytes_max <= http_body_bytes_max,
              "all files of an edit session can be sent when it is opened");
static_assert(2 * 6ull * spelled_text_bytes_max <= http_answer_bytes_max, "the text of tokens is sent as an answer");
static_assert(2 * edit_file_bytes_max <= http_answer_bytes_max, "a file that is shown is an answer");

}  // namespace redline::sizes
