#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "actors/http/fields/field_reader.hpp"
#include "actors/http/fields/json.hpp"
#include "actors/http/request/generation_request.hpp"

namespace redline::api {

inline constexpr std::int64_t token_max = std::numeric_limits<token>::max();

/// An array of token ids; nullopt for anything else. Whether the model has them is seen later.
std::optional<std::vector<token>> as_tokens(const json& list);

/// The prompts of completions: texts or tokens, one or a list.
void read_prompts(field_reader& fields, const request_limits& limits, generation_request& out);
/// The suffix of a completion: its prompts are what stands before the gap.
void read_suffix(field_reader& fields, const request_limits& limits, generation_request& out);
/// llama.cpp's /infill: before the gap stands input_prefix and then prompt, which is what the cursor's line has.
void read_infill(field_reader& fields, std::optional<api_error>& error, const request_limits& limits,
                 generation_request& out);

}  // namespace redline::api
