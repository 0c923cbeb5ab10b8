#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.hpp"
#include "runtime/huggingface/json_object.hpp"

namespace redline::huggingface {

/// What tokenizer.json puts around its model: each part ("normalizer", "pre_tokenizer", "post_processor") is one step
/// or a Sequence of them. Gives the steps, Sequences within Sequences laid open; none when the part is absent.
result<std::vector<json_object>> read_steps(const json_object& tokenizer, std::string_view part);

/// The steps of a part in one line, with the settings that decide what they do: "Split([\r\n]), Digits(single)". Two
/// parts with the same line do the same. A step that is not known here is its type alone.
result<std::string> describe_steps(const json_object& tokenizer, std::string_view part);

/// The value of tokenizer.ggml.pre for the pre-tokenizer of a byte-level model, recognised by what it does; a failure
/// says what was found. Its name stands for more than the cuts: text::bpe_tokenizer takes whole pieces before it merges
/// for some names, so the model's ignore_merges chooses among names with the same cuts, and has to agree with one.
result<std::string> byte_level_name(const json_object& tokenizer);

/// For a SentencePiece-like model: whether a blank is put before the first word. A failure for a normalizer and a
/// pre-tokenizer that do more than to write blanks as U+2581.
result<bool> adds_space_prefix(const json_object& tokenizer);

}  // namespace redline::huggingface
