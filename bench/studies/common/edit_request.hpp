#pragma once

#include <optional>

#include "actors/node/engine.hpp"
#include "actors/prompts/edit_prompt.hpp"
#include "bench/studies/common/names.hpp"

namespace redline::studies {

/// The conversation as the engine's target model reads it; the answer may fill the context. With `copy` the answer is a
/// program over the file, and its text is the new file.
result<generation_spec> request_of(const edit_task& task, const draft::draft_options& how, const engine& e,
                                   const std::optional<copy_options>& copy = std::nullopt);

}  // namespace redline::studies
