#pragma once

#include <array>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/text/pretokenizer.hpp"
#include "runtime/text/tokenizer.hpp"

namespace redline::text {

/// Byte-level byte-pair encoding as in GPT-2: a pre-tokenizer cuts the text, each piece starts as one symbol per byte,
/// and the pair with the lowest rank is merged until none is left.
class bpe_tokenizer final : public tokenizer {
 public:
  static result<std::shared_ptr<const tokenizer>> make(vocabulary vocab, const gguf::gguf_file& file);

 private:
  /// A symbol is a text that can occur during merging. The texts of tokens have the tokens' numbers; further symbols,
  /// from merges whose result is not a token, are numbered after them.
  using symbol = std::int32_t;
  struct merge {
    std::uint64_t pair = no_pair;  // left symbol, right symbol
    std::int32_t rank = 0;
    symbol outcome = 0;
  };
  static constexpr std::uint64_t no_pair = ~0ULL;
  struct scratch;

  explicit bpe_tokenizer(vocabulary vocab) : tokenizer(std::move(vocab)) {}

  result<void> load_symbols(const gguf::gguf_file& file);
  result<void> load_merges(const gguf::gguf_file& file);
  void insert(const merge& added);
  [[nodiscard]] const merge* find(symbol left, symbol right) const;
  [[nodiscard]] bool is_token(symbol s) const { return vocab().contains(s); }

  void encode_ordinary(std::string_view text, bool first_of_segment, std::vector<token>& out) const override;
  void encode_piece(std::string_view piece, scratch& work, std::vector<token>& out) const;
  void push_pair(scratch& work, std::int32_t left) const;
  void append_bytes(std::string_view bytes, std::vector<token>& out) const;

  std::unique_ptr<pretokenizer> pretokenizer_;
  /// Whether a piece that is itself a token is taken without merging (llama 3).
  bool whole_pieces_first_ = false;
  std::unordered_map<std::string_view, token> by_bytes_;  // only for `whole_pieces_first_`
  std::array<symbol, 256> byte_symbols_{};
  /// What an unmerged byte becomes: its token, or a replacement.
  std::array<std::vector<token>, 256> byte_tokens_;
  /// Uses open addressing with linear probing; the size is a power of two, at most half full.
  std::vector<merge> merges_;
};

}  // namespace redline::text
