#pragma once

#include <vector>

#include "runtime/base/result.hpp"
#include "runtime/huggingface/json_object.hpp"
#include "runtime/huggingface/vocabulary.hpp"

namespace redline::huggingface {

/// Marks the unknown token and the byte tokens "<0x00>" to "<0xFF>", which must all exist: SentencePiece has separate
/// kinds for them.
result<void> mark_sentencepiece_kinds(const json_object& tokenizer, vocabulary& words);

/// One score per token that makes SentencePiece's merging reproduce the merges. SentencePiece has no merges: it joins
/// any two pieces that form a piece, best score first. A score is minus the rank of the first merge that makes the
/// piece, or 0 if no merge does. Refuses a vocabulary where it could join what the merges do not. If several merges
/// make one piece, later ones are joined as early as the first, which matters only for overlapping pairs.
result<std::vector<float>> sentencepiece_scores(const json_object& tokenizer, const vocabulary& words);

}  // namespace redline::huggingface
