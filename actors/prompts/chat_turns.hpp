#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/ids.hpp"
#include "runtime/base/result.hpp"
#include "runtime/base/token_range.hpp"
#include "runtime/text/tokenizer.hpp"

namespace redline::actors {

/// Renders the first messages of a conversation, without the beginning of an answer after them.
using conversation_text = std::function<result<std::string>(const nlohmann::ordered_json& messages)>;

/// The turns of a conversation before its last one, oldest first and adjacent: the parts of `prompt` that can be
/// evicted without cutting through the template's frame. A turn is a user's message and what was answered to it, with
/// all that the template put around them. At most 64, and only the oldest ones of a conversation so long that rendering
/// its beginnings would be costly. The first turn is left out when it cannot be told apart from what the template
/// writes before it. Empty when there is no older turn, or when the template does not render the beginning of a
/// conversation as the beginning of the text. messages: an array; text: what `prompt` are the tokens of; mark: what
/// keeps control tokens in messages apart in both (`encode_options::shield`).
std::vector<token_range> older_turns(const nlohmann::ordered_json& messages, std::string_view text,
                                     std::span<const token> prompt, const text::tokenizer& tokenizer,
                                     const conversation_text& render, std::string_view mark = {});

}  // namespace redline::actors
