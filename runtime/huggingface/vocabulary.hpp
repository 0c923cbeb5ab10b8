#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/base/result.hpp"
#include "runtime/gguf/tokenizer_keys.hpp"
#include "runtime/huggingface/json_object.hpp"

namespace redline::huggingface {

/// The tokens and merges of a tokenizer.json whose model is BPE, by id; ids without a token are unused.
struct vocabulary {
  std::vector<std::string> texts;
  std::vector<gguf::token_kind> kinds;
  /// Ordered by rank. Both sides and the result are tokens of the model's own vocabulary.
  std::vector<std::pair<std::string, std::string>> merges;

  std::optional<std::uint32_t> unknown;                // named by the model's unk_token
  std::unordered_map<std::string, std::uint32_t> ids;  // of all tokens except the unused

  [[nodiscard]] std::optional<std::uint32_t> find(const std::string& text) const;
};

/// Reads model.vocab, model.merges and added_tokens; `size` is the number of ids in the model. Added tokens become
/// control tokens if they are special, else user-defined ones. A failure names the field: ids beyond `size` or used
/// twice, merges of texts that are not tokens, or settings of the model or of an added token that a GGUF file cannot
/// express.
result<vocabulary> read_vocabulary(const json_object& tokenizer, std::uint32_t size);

}  // namespace redline::huggingface
