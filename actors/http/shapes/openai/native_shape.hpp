#pragma once

#include <span>
#include <string>
#include <string_view>

#include "actors/http/fields/json.hpp"
#include "actors/http/request/answer_shape.hpp"

/// Answers of /completion and /infill in the shape of llama.cpp's server, as its editor plugins read them.
namespace redline::api {

/// The request's settings, including the defaults of those that it leaves out.
json native_settings(const generation_request& of);

/// One event of a streamed answer.
json native_part(const response_head& head, std::uint32_t index, std::string_view text,
                 std::span<const token_report> tokens);
/// The whole answer, or the last event of a stream if the text is empty.
json native_answer(const response_head& head, const choice& one);

/// Selects the members of the answer that the paths name ("timings/prompt_ms"), with the path as the member's name.
/// Without paths, returns the whole answer.
json pick_fields(json answer, std::span<const std::string> paths);

/// An answer in progress, in the form of llama.cpp's slots.
struct slot_report {
  struct detail {
    std::uint32_t tokens_count = 0;  // generated so far
    std::optional<std::uint32_t> tokens_max{};
    float temperature = 0;
    bool stream = false;
  };
  std::uint64_t task = 0;
  bool has_text = false;
  std::optional<detail> details;  // only for the caller's own answers
};
inline constexpr std::size_t slots_shown_max = 256;
inline constexpr std::size_t idle_slots_shown_max = 16;

/// An array of the running answers, followed by some of the free slots. places: the number of answers computed in turn.
/// If more are running, answers with text come first, then the oldest; the rest wait and are not shown.
std::string slots_body(std::vector<slot_report> running, std::size_t places, std::uint32_t context_tokens_max);

}  // namespace redline::api
