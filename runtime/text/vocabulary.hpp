#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/base/ids.hpp"
#include "runtime/base/result.hpp"
#include "runtime/gguf/gguf_file.hpp"

namespace redline::text {

/// What a token is for, with the numbers of the file format. `undefined` is treated as `normal`.
enum class token_type : std::uint8_t {
  undefined = 0,
  normal = 1,
  unknown = 2,
  control = 3,       // not produced from text unless the caller requests it: <|im_end|>
  user_defined = 4,  // always matched as a whole, before anything else
  unused = 5,
  byte = 6,  // SentencePiece's byte fallback: <0x0A>
};

enum class vocabulary_kind : std::uint8_t { byte_level_bpe, sentencepiece };

/// Tokens for fill-in-the-middle.
struct fim_tokens {
  std::optional<token> prefix;
  std::optional<token> suffix;
  std::optional<token> middle;
  std::optional<token> pad;
  std::optional<token> repository;
  std::optional<token> file_separator;

  [[nodiscard]] bool complete() const { return prefix && suffix && middle; }
};

/// The tokens of a model file and the file's settings for them, validated once: lengths agree, types are known, every
/// id is a token. Texts are as in the file (byte-level or with U+2581 for a space), not the bytes they represent.
/// Independent of the file once loaded.
class vocabulary {
 public:
  static result<vocabulary> load(const gguf::gguf_file& file);

  [[nodiscard]] vocabulary_kind kind() const { return kind_; }
  [[nodiscard]] std::size_t size() const { return texts_.size(); }
  [[nodiscard]] bool contains(token id) const { return id >= 0 && static_cast<std::size_t>(id) < texts_.size(); }

  /// Requires an id that `contains` accepts.
  [[nodiscard]] std::string_view text(token id) const { return texts_[static_cast<std::size_t>(id)]; }
  [[nodiscard]] token_type type(token id) const { return types_[static_cast<std::size_t>(id)]; }
  /// The score of a piece that no merge makes.
  static constexpr float unmade = -std::numeric_limits<float>::infinity();
  /// SentencePiece only: pieces with higher scores are merged earlier.
  [[nodiscard]] float score(token id) const { return scores_[static_cast<std::size_t>(id)]; }
  /// If several tokens have the same text, the last one, as in other runtimes.
  [[nodiscard]] std::optional<token> find(std::string_view text) const;

  [[nodiscard]] std::optional<token> bos() const { return bos_; }
  [[nodiscard]] std::optional<token> eos() const { return eos_; }
  /// The end of a turn in a conversation: from the file, else a well-known token.
  [[nodiscard]] std::optional<token> eot() const { return eot_; }
  /// The token with which each message of a conversation begins, if it is a well-known one.
  [[nodiscard]] std::optional<token> message_start() const { return message_start_; }
  [[nodiscard]] std::optional<token> unknown() const { return unknown_; }
  [[nodiscard]] std::optional<token> padding() const { return padding_; }
  /// Tokens that answers never have (`tokenizer.ggml.suppress_tokens`), such as those of other media.
  [[nodiscard]] const std::vector<token>& suppressed() const { return suppressed_; }
  [[nodiscard]] const fim_tokens& fim() const { return fim_; }
  [[nodiscard]] bool adds_bos() const { return add_bos_; }
  [[nodiscard]] bool adds_eos() const { return add_eos_; }
  [[nodiscard]] bool adds_space_prefix() const { return add_space_prefix_; }
  /// True for eos, eot, the well-known end tokens among the control tokens, and the fim tokens that only follow a
  /// finished middle. False for an id outside the vocabulary.
  [[nodiscard]] bool is_end_of_generation(token id) const {
    return contains(id) && ends_[static_cast<std::size_t>(id)];
  }

  /// `tokenizer.ggml.pre`; "default" if the file does not say.
  [[nodiscard]] const std::string& pretokenizer_name() const { return pretokenizer_name_; }
  [[nodiscard]] const std::optional<std::string>& chat_template() const { return chat_template_; }
  /// `tokenizer.chat_template.tool_use`, for conversations with tools.
  [[nodiscard]] const std::optional<std::string>& tool_template() const { return tool_template_; }
  /// `general.name`, which determines a few quirks; may be empty.
  [[nodiscard]] const std::string& model_name() const { return model_name_; }

  /// Equal for two files whose ids have the same meaning: covers the kind and every text, without unused tokens at the
  /// end, in which sizes of one model family differ.
  [[nodiscard]] std::uint64_t digest() const { return digest_; }

 private:
  result<void> load_tokens(const gguf::gguf_file& file);
  result<void> load_scores(const gguf::gguf_file& file, bool by_merges);
  result<void> load_settings(const gguf::gguf_file& file);
  result<void> load_special_ids(const gguf::gguf_file& file);
  result<void> load_suppressed(const gguf::gguf_file& file);
  /// The token that one of `keys` names, else the first of `texts` that is a special token.
  result<std::optional<token>> special_id(const gguf::gguf_file& file, std::initializer_list<std::string_view> keys,
                                          std::initializer_list<std::string_view> texts) const;
  [[nodiscard]] std::optional<token> find_special(std::string_view text) const;
  void mark_ends();
  void compute_digest();

  vocabulary_kind kind_ = vocabulary_kind::byte_level_bpe;
  std::vector<std::string> texts_;
  std::vector<token_type> types_;
  std::vector<float> scores_;
  /// Keys are views into `texts_`, whose strings do not move when the vocabulary is moved.
  std::unordered_map<std::string_view, token> by_text_;
  std::optional<token> bos_;
  std::optional<token> eos_;
  std::optional<token> eot_;
  std::optional<token> message_start_;
  std::optional<token> unknown_;
  std::optional<token> padding_;
  std::vector<token> suppressed_;
  fim_tokens fim_;
  bool add_bos_ = false;
  bool add_eos_ = false;
  bool add_space_prefix_ = false;
  std::vector<bool> ends_;
  std::string pretokenizer_name_;
  std::string model_name_;
  std::optional<std::string> chat_template_;
  std::optional<std::string> tool_template_;
  std::uint64_t digest_ = 0;
};

}  // namespace redline::text
