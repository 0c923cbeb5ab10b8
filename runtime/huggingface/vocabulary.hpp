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

/// The tokens and merges of a tokenizer.json whose model is BPE, by id; ids that no token has are unused.
struct vocabulary {
  std::vector<std::string> texts;
  std::vector<gguf::token_kind> kinds;
  /// In the order of their ranks. Both sides and what they make are tokens of the model's own vocabulary.
  std::vector<std::pair<std::string, std::string>> merges;

  std::optional<std::uint32_t> unknown;                // what the model's unk_token names
  std::unordered_map<std::string, std::uint32_t> ids;  // of all but the unused

  [[nodiscard]] std::optional<std::uint32_t> find(const std::string& text) const;
};

/// Reads model.vocab, model.merges and added_tokens; `size`: how many ids the model has room for. Added tokens become
/// control tokens when they are special, else user-defined ones. A failure names the field: ids beyond `size` or given
/// twice, merges of what are no tokens, settings of the model or of an added token that a GGUF file cannot hold.
result<vocabulary> read_vocabulary(const json_object& tokenizer, std::uint32_t size);

}  // namespace redline::huggingface
