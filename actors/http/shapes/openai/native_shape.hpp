#pragma once

#include <span>
#include <string>
#include <string_view>

#include "actors/http/fields/json.hpp"
#include "actors/http/request/answer_shape.hpp"

/// Answers of /completion and /infill in the shape of llama.cpp's server, by which its own editors' plugins read them.
namespace redline::api {

/// What a request asks for, with what stands for all that it does not say.
json native_settings(const generation_request& of);

/// A part of a streamed answer.
json native_part(const response_head& head, std::uint32_t index, std::string_view text,
                 std::span<const token_report> tokens);
/// The whole answer, or, with empty text, the last event of a stream.
json native_answer(const response_head& head, const choice& one);

/// Of the answer, what these paths name ("timings/prompt_ms"), under the paths as they are; all when there are none.
json pick_fields(json answer, std::span<const std::string> paths);

/// An answer in progress, as llama.cpp shows its slots.
struct slot_report {
  struct detail {
    std::uint32_t tokens_count = 0;  // so far
    std::optional<std::uint32_t> tokens_max{};
    float temperature = 0;
    bool stream = false;
  };
  std::uint64_t task = 0;
  bool has_text = false;
  std::optional<detail> details;  // of the caller's own
};
inline constexpr std::size_t slots_shown_max = 256;
inline constexpr std::size_t idle_slots_shown_max = 16;

/// An array with those, and free places after them, of which some are shown. places: answers that are computed in
/// turn. Of more than that the ones that have text come first, then those that came first; the others wait, and are not
/// shown.
std::string slots_body(std::vector<slot_report> running, std::size_t places, std::uint32_t context_tokens_max);

}  // namespace redline::api
