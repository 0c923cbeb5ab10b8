#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.hpp"
#include "runtime/huggingface/json_object.hpp"

namespace redline::huggingface {

/// Returns the steps around a tokenizer.json's model: each part ("normalizer", "pre_tokenizer", "post_processor") is
/// one step or a Sequence of them. Nested Sequences are flattened; empty if the part is absent.
result<std::vector<json_object>> read_steps(const json_object& tokenizer, std::string_view part);

/// The steps of a part in one line, with the settings that determine their effect: "Split([\r\n]), Digits(single)". Two
/// parts with the same line have the same effect. An unknown step is represented by its type only.
result<std::string> describe_steps(const json_object& tokenizer, std::string_view part);

/// The value of tokenizer.ggml.pre for the pre-tokenizer of a byte-level model, recognized by its effect; a failure
/// says what was found. The name implies more than the cuts: for some names text::bpe_tokenizer takes whole pieces
/// before it merges, so the model's ignore_merges selects among names with the same cuts, and must match one.
result<std::string> byte_level_name(const json_object& tokenizer);

/// For a SentencePiece-like model: whether a space is put before the first word. Fails if the normalizer and
/// pre-tokenizer do more than write spaces as U+2581.
result<bool> adds_space_prefix(const json_object& tokenizer);

}  // namespace redline::huggingface
