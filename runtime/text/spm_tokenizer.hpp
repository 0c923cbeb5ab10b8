#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/text/tokenizer.hpp"

namespace redline::text {

/// SentencePiece's BPE: spaces become U+2581, each character starts as one symbol, and the adjacent symbols whose
/// joined text is the token with the highest score are merged until none is left. The remaining symbols that are not
/// tokens are encoded as bytes.
class spm_tokenizer final : public tokenizer {
 public:
  static result<std::shared_ptr<const tokenizer>> make(vocabulary vocab, const gguf::gguf_file& file);

 private:
  struct scratch;

  explicit spm_tokenizer(vocabulary vocab) : tokenizer(std::move(vocab)) {}

  result<void> load(const gguf::gguf_file& file);
  void encode_ordinary(std::string_view text, bool first_of_segment, std::vector<token>& out) const override;
  void encode_escaped(std::string_view text, std::vector<token>& out) const;
  void encode_section(std::string_view section, scratch& work, std::vector<token>& out) const;
  void push_pair(scratch& work, std::int32_t left) const;

  /// Texts that merging may produce. Control, unknown and byte tokens are excluded, because text cannot express them.
  std::unordered_map<std::string_view, token> mergeable_;
  std::size_t mergeable_bytes_max_ = 0;
  /// Whether two bytes are adjacent in some mergeable text, by left * 256 + right. No merge can cross two bytes that
  /// never are, so a long text is divided into short sections that give the same tokens.
  std::vector<bool> side_by_side_ = std::vector<bool>(65536);
  std::array<token, 256> byte_tokens_{};
};

}  // namespace redline::text
