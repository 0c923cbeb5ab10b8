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

/// An array of token ids; nullopt for anything else. Whether the model has these tokens is checked later.
std::optional<std::vector<token>> as_tokens(const json& list);

/// The prompts of completions: one or a list, as texts or tokens.
void read_prompts(field_reader& fields, const request_limits& limits, generation_request& out);
/// The suffix of a completion, whose prompts are the text before the gap.
void read_suffix(field_reader& fields, const request_limits& limits, generation_request& out);
/// llama.cpp's /infill: the text before the gap is input_prefix followed by prompt, the part of the cursor's line.
void read_infill(field_reader& fields, std::optional<api_error>& error, const request_limits& limits,
                 generation_request& out);

}  // namespace redline::api
