#pragma once

#include <span>
#include <string>
#include <string_view>

#include "actors/http/fields/json.hpp"
#include "actors/http/openai/response.hpp"

/// Answers of /completion and /infill in the shape of llama.cpp's server, by which its own editors' plugins read them.
namespace redline::api {

/// A part of a streamed answer.
json native_part(const response_head& head, std::uint32_t index, std::string_view text,
                 std::span<const token_report> tokens);
/// The whole answer, or, with empty text, the last event of a stream.
json native_answer(const response_head& head, const choice& one);

/// Of the answer, what these paths name ("timings/prompt_ms"), under the paths as they are; all when there are none.
json pick_fields(json answer, std::span<const std::string> paths);

}  // namespace redline::api
