#include "runtime/huggingface/sentencepiece.hpp"

#include <string>
#include <unordered_set>

#include "runtime/base/hex.hpp"

namespace redline::huggingface {
namespace {

std::string byte_token(unsigned byte) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  return {'<', '0', 'x', digits[byte >> 4], digits[byte & 15], '>'};
}

// A longer token is not a piece of ordinary text and is skipped: this limits the time that a hostile file can take.
constexpr std::size_t piece_bytes_max = 1024;

/// The ids of two pieces as one number.
std::uint64_t pair_of(std::uint32_t left, std::uint32_t right) { return std::uint64_t{left} << 32 | right; }

class merge_set {
 public:
  explicit merge_set(const vocabulary& words) : words_(words) {
    for (const auto& [left, right] : words.merges) pairs_.insert(pair_of(*words.find(left), *words.find(right)));
  }

  /// A cut of the piece into two parts that no merge joins; npos if there is none.
  [[nodiscard]] std::size_t find_unmerged_cut(const std::string& piece) const {
    for (std::size_t at = 1; at < piece.size(); ++at) {
      const auto left = normal(piece.substr(0, at));
      const auto right = left ? normal(piece.substr(at)) : std::nullopt;
      if (right && !pairs_.contains(pair_of(*left, *right))) return at;
    }
    return std::string::npos;
  }

 private:
  [[nodiscard]] std::optional<std::uint32_t> normal(const std::string& text) const {
    const auto id = words_.find(text);
    return id && words_.kinds[*id] == gguf::token_kind::normal ? id : std::nullopt;
  }

  const vocabulary& words_;
  std::unordered_set<std::uint64_t> pairs_;
};

}  // namespace

result<void> mark_sentencepiece_kinds(const json_object& tokenizer, vocabulary& words) {
  if (words.unknown) words.kinds[*words.unknown] = gguf::token_kind::unknown;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const auto id = words.find(byte_token(byte));
    if (!id) {
      return tokenizer.malformed(
          "model.vocab",
          "expected a token for every byte, as byte_fallback requires, found no '" + byte_token(byte) + "'");
    }
    words.kinds[*id] = gguf::token_kind::byte;
  }
  return {};
}

result<std::vector<float>> sentencepiece_scores(const json_object& tokenizer, const vocabulary& words) {
  std::vector<float> scores(words.texts.size(), 0);
  for (std::size_t rank = words.merges.size(); rank-- > 0;) {  // the first merge of a piece is written last
    const auto& [left, right] = words.merges[rank];
    scores[*words.find(left + right)] = -static_cast<float>(rank + 1);
  }
  const merge_set merges(words);
  for (std::size_t id = 0; id < words.texts.size(); ++id) {
    if (words.kinds[id] != gguf::token_kind::normal || words.texts[id].size() > piece_bytes_max) continue;
    const std::string& piece = words.texts[id];
    const std::size_t cut = merges.find_unmerged_cut(piece);
    if (cut == std::string::npos) continue;
    return tokenizer.unsupported(
        "model.merges",
        "expected a merge for every two tokens that form a token, as in SentencePiece, found none for " +
            quote_bytes(std::string_view(piece).substr(0, cut)) + " and " +
            quote_bytes(std::string_view(piece).substr(cut)));
  }
  return scores;
}

}  // namespace redline::huggingface
