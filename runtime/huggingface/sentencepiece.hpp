#pragma once

#include <vector>

#include "runtime/base/result.hpp"
#include "runtime/huggingface/json_object.hpp"
#include "runtime/huggingface/vocabulary.hpp"

namespace redline::huggingface {

/// Marks the unknown token and the byte tokens "<0x00>" to "<0xFF>", all of which must be there: SentencePiece has
/// kinds of their own for them.
result<void> mark_sentencepiece_kinds(const json_object& tokenizer, vocabulary& words);

/// One score per token that makes SentencePiece's merging, which knows no merges but joins any two pieces that together
/// are a piece, best score first, do what the merges do: minus the rank of the first merge that makes the piece, 0 for
/// what no merge makes. Refuses a vocabulary where it could join what the merges do not. Where several merges make one
/// piece, those of later rank are joined as early as the first: it decides only between pairs that overlap.
result<std::vector<float>> sentencepiece_scores(const json_object& tokenizer, const vocabulary& words);

}  // namespace redline::huggingface
