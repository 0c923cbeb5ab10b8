#include "runtime/text/vocabulary.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "runtime/base/hash.hpp"
#include "runtime/text/pretokenizer_table.hpp"

namespace redline::text {
namespace {

failure malformed(const gguf::gguf_file& file, std::string_view key, const std::string& why) {
  return {errc::file_malformed, file.path() + ": metadata '" + std::string(key) + "': " + why};
}

/// Reads an array with one number for each token.
result<const gguf::array*> per_token(const gguf::gguf_file& file, std::string_view key, std::size_t token_count) {
  REDLINE_TRY_ASSIGN(const gguf::array* out, file.get_array(key));
  if (out->element_type == gguf::value_type::string) return malformed(file, key, "expected numbers, found strings");
  if (out->size() != token_count) {
    return malformed(file, key,
                     "expected one number for each of the " + std::to_string(token_count) + " tokens, found " +
                         std::to_string(out->size()));
  }
  return out;
}

result<std::optional<token>> id_at(const gguf::gguf_file& file, std::string_view key, std::size_t token_count) {
  if (file.find(key) == nullptr) return std::optional<token>();
  REDLINE_TRY_ASSIGN(const std::uint64_t id, file.get_unsigned(key));
  // Converters write -1, as 32 bits, to mean none.
  if (id == std::numeric_limits<std::uint32_t>::max()) return std::optional<token>();
  if (id >= token_count) {
    return malformed(file, key,
                     "token " + std::to_string(id) + " is outside of the vocabulary of " + std::to_string(token_count));
  }
  return std::optional<token>(static_cast<token>(id));
}

constexpr const char* message_end = "<|end|>";

/// Whether the format is harmony (gpt-oss), where <|end|> only ends a message and other tokens end the answer.
bool has_harmony_ends(const vocabulary& v) {
  const auto is_control = [&](std::string_view text) {
    const auto id = v.find(text);
    return id && v.type(*id) == token_type::control;
  };
  return is_control("<|return|>") && is_control("<|call|>");
}

}  // namespace

result<vocabulary> vocabulary::load(const gguf::gguf_file& file) {
  vocabulary out;
  REDLINE_TRY_ASSIGN(const auto model, file.get_string("tokenizer.ggml.model"));
  if (model == "gpt2") {
    out.kind_ = vocabulary_kind::byte_level_bpe;
  } else if (model == "llama" || model == "gemma4") {
    out.kind_ = vocabulary_kind::sentencepiece;
  } else {
    return failure{errc::unsupported_format, file.path() + ": metadata 'tokenizer.ggml.model': expected 'gpt2', " +
                                                 "'llama' or 'gemma4', found '" + std::string(model) + "'"};
  }
  REDLINE_TRY(out.load_tokens(file));
  if (out.kind_ == vocabulary_kind::sentencepiece) REDLINE_TRY(out.load_scores(file, model == "gemma4"));
  REDLINE_TRY(out.load_settings(file));
  REDLINE_TRY(out.load_special_ids(file));
  REDLINE_TRY(out.load_suppressed(file));
  out.mark_ends();
  out.compute_digest();
  return out;
}

result<void> vocabulary::load_tokens(const gguf::gguf_file& file) {
  constexpr std::string_view tokens_key = "tokenizer.ggml.tokens";
  constexpr std::string_view types_key = "tokenizer.ggml.token_type";
  REDLINE_TRY_ASSIGN(const gguf::array* tokens, file.get_array(tokens_key));
  if (tokens->element_type != gguf::value_type::string) return malformed(file, tokens_key, "expected strings");
  const std::size_t count = tokens->size();
  if (count == 0) return malformed(file, tokens_key, "is empty");
  if (count > static_cast<std::size_t>(std::numeric_limits<token>::max())) {
    return malformed(file, tokens_key, "has more tokens than token ids can represent");
  }
  texts_.assign(tokens->strings.begin(), tokens->strings.end());
  by_text_.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (!texts_[i].empty()) by_text_[texts_[i]] = static_cast<token>(i);
  }

  types_.assign(count, token_type::normal);
  if (file.find(types_key) != nullptr) {
    REDLINE_TRY_ASSIGN(const gguf::array* types, per_token(file, types_key, count));
    for (std::size_t i = 0; i < count; ++i) {
      const double number = types->numbers[i];
      if (!(number >= 0 && number <= static_cast<double>(token_type::byte)) || number != static_cast<int>(number)) {
        return malformed(file, types_key,
                         "token " + std::to_string(i) + " has the unknown type " + std::to_string(number));
      }
      if (number != 0) types_[i] = static_cast<token_type>(static_cast<int>(number));
    }
  }

  return {};
}

/// Gemma 4's files list merges instead, as byte-level BPE does: a token's score is the place of the first that makes
/// it.
result<void> vocabulary::load_scores(const gguf::gguf_file& file, bool by_merges) {
  constexpr std::string_view scores_key = "tokenizer.ggml.scores", merges_key = "tokenizer.ggml.merges";
  if (!by_merges) {
    REDLINE_TRY_ASSIGN(const gguf::array* scores, per_token(file, scores_key, size()));
    scores_.reserve(size());
    for (std::size_t i = 0; i < size(); ++i) {
      if (scores->numbers[i] != scores->numbers[i]) {
        return malformed(file, scores_key, "the score of token " + std::to_string(i) + " is not a number");
      }
      scores_.push_back(static_cast<float>(scores->numbers[i]));
    }
    return {};
  }
  REDLINE_TRY_ASSIGN(const gguf::array* merges, file.get_array(merges_key));
  if (merges->element_type != gguf::value_type::string) return malformed(file, merges_key, "expected strings");
  scores_.assign(size(), unmade);
  for (std::size_t rank = merges->strings.size(); rank-- > 0;) {
    const std::string_view merge = merges->strings[rank];
    const std::size_t blank = merge.find(' ');
    if (blank == 0 || blank >= merge.size() - 1) {  // npos, too
      return malformed(file, merges_key,
                       "merge " + std::to_string(rank) + ": expected two strings and a space between");
    }
    const auto made = find(std::string(merge.substr(0, blank)) + std::string(merge.substr(blank + 1)));
    if (made) scores_[static_cast<std::size_t>(*made)] = -static_cast<float>(rank + 1);
  }
  return {};
}

result<void> vocabulary::load_settings(const gguf::gguf_file& file) {
  pretokenizer_name_ = "default";
  if (file.find("tokenizer.ggml.pre") != nullptr) {
    REDLINE_TRY_ASSIGN(pretokenizer_name_, file.get_string("tokenizer.ggml.pre"));
  }
  if (file.find("tokenizer.chat_template") != nullptr) {
    REDLINE_TRY_ASSIGN(chat_template_.emplace(), file.get_string("tokenizer.chat_template"));
  }
  if (file.find("tokenizer.chat_template.tool_use") != nullptr) {
    REDLINE_TRY_ASSIGN(tool_template_.emplace(), file.get_string("tokenizer.chat_template.tool_use"));
  }
  if (file.find("general.name") != nullptr) {
    REDLINE_TRY_ASSIGN(model_name_, file.get_string("general.name"));
  }
  const bool sentencepiece = kind_ == vocabulary_kind::sentencepiece;
  const pretokenizer_kind* cutter = find_pretokenizer(pretokenizer_name_);
  const bool begins = sentencepiece || (cutter != nullptr && cutter->adds_bos);
  REDLINE_TRY_ASSIGN(add_bos_, file.get_bool("tokenizer.ggml.add_bos_token", begins));
  REDLINE_TRY_ASSIGN(add_eos_, file.get_bool("tokenizer.ggml.add_eos_token", false));
  REDLINE_TRY_ASSIGN(const auto model, file.get_string("tokenizer.ggml.model"));
  REDLINE_TRY_ASSIGN(add_space_prefix_, file.get_bool("tokenizer.ggml.add_space_prefix", model == "llama"));
  return {};
}

std::optional<token> vocabulary::find(std::string_view text) const {
  const auto it = by_text_.find(text);
  return it == by_text_.end() ? std::nullopt : std::optional<token>(it->second);
}

std::optional<token> vocabulary::find_special(std::string_view text) const {
  const auto id = find(text);
  if (!id) return std::nullopt;
  const bool special = type(*id) == token_type::control || type(*id) == token_type::user_defined;
  // CodeLlama's files type these as ordinary pieces; no other files have texts that begin like that.
  const bool code_llama = text.starts_with("\u2581<");
  return special || code_llama ? id : std::nullopt;
}

result<std::optional<token>> vocabulary::special_id(const gguf::gguf_file& file,
                                                    std::initializer_list<std::string_view> keys,
                                                    std::initializer_list<std::string_view> texts) const {
  for (const std::string_view key : keys) {
    REDLINE_TRY_ASSIGN(const auto id, id_at(file, key, size()));
    if (id) return id;
  }
  for (const std::string_view text : texts) {
    if (const auto id = find_special(text)) return id;
  }
  return std::optional<token>();
}

/// Ids outside the vocabulary are left out: files of cut models have them.
result<void> vocabulary::load_suppressed(const gguf::gguf_file& file) {
  constexpr std::string_view key = "tokenizer.ggml.suppress_tokens";
  if (file.find(key) == nullptr) return {};
  REDLINE_TRY_ASSIGN(const gguf::array* ids, file.get_array(key));
  if (ids->element_type == gguf::value_type::string) return malformed(file, key, "expected token ids");
  for (const double id : ids->numbers) {
    if (id >= 0 && id < static_cast<double>(size()) && id == std::floor(id))
      suppressed_.push_back(static_cast<token>(id));
  }
  std::ranges::sort(suppressed_);
  const auto again = std::ranges::unique(suppressed_);
  suppressed_.erase(again.begin(), again.end());
  return {};
}

result<void> vocabulary::load_special_ids(const gguf::gguf_file& file) {
  REDLINE_TRY_ASSIGN(bos_, special_id(file, {"tokenizer.ggml.bos_token_id"}, {}));
  REDLINE_TRY_ASSIGN(eos_, special_id(file, {"tokenizer.ggml.eos_token_id"}, {}));
  REDLINE_TRY_ASSIGN(unknown_, special_id(file, {"tokenizer.ggml.unknown_token_id"}, {}));
  REDLINE_TRY_ASSIGN(padding_, special_id(file, {"tokenizer.ggml.padding_token_id"}, {}));
  if (kind_ == vocabulary_kind::sentencepiece) {
    // Files of this kind may leave out the ids that SentencePiece itself defines.
    if (!unknown_ && type(0) == token_type::unknown) unknown_ = 0;
    if (!bos_ && find("<s>") && type(*find("<s>")) == token_type::control) bos_ = find("<s>");
    if (!eos_ && find("</s>") && type(*find("</s>")) == token_type::control) eos_ = find("</s>");
  }
  REDLINE_TRY_ASSIGN(eot_,
                     special_id(file, {"tokenizer.ggml.eot_token_id"},
                                {"<|eot_id|>", "<|im_end|>", message_end, "<end_of_turn>", "<turn|>", "<|EOT|>"}));
  if (has_harmony_ends(*this) && eot_ == find(message_end)) eot_ = find("<|return|>");
  REDLINE_TRY_ASSIGN(message_start_,
                     special_id(file, {},
                                {"<|im_start|>", "<|start_header_id|>", "<|start_of_role|>", "<start_of_turn>",
                                 "<|turn>", "<|START_OF_TURN_TOKEN|>", "<|start|>"}));
  REDLINE_TRY_ASSIGN(
      fim_.prefix,
      special_id(file, {"tokenizer.ggml.fim_pre_token_id", "tokenizer.ggml.prefix_token_id"},
                 {"<|fim_prefix|>", "<fim_prefix>", "<fim-prefix>", "<｜fim▁begin｜>", "<PRE>", "▁<PRE>", "[PREFIX]"}));
  REDLINE_TRY_ASSIGN(
      fim_.suffix,
      special_id(file, {"tokenizer.ggml.fim_suf_token_id", "tokenizer.ggml.suffix_token_id"},
                 {"<|fim_suffix|>", "<fim_suffix>", "<fim-suffix>", "<｜fim▁hole｜>", "<SUF>", "▁<SUF>", "[SUFFIX]"}));
  REDLINE_TRY_ASSIGN(
      fim_.middle, special_id(file, {"tokenizer.ggml.fim_mid_token_id", "tokenizer.ggml.middle_token_id"},
                              {"<|fim_middle|>", "<fim_middle>", "<fim-middle>", "<｜fim▁end｜>", "<MID>", "▁<MID>"}));
  REDLINE_TRY_ASSIGN(fim_.pad,
                     special_id(file, {"tokenizer.ggml.fim_pad_token_id"}, {"<|fim_pad|>", "<fim_pad>", "<fim-pad>"}));
  REDLINE_TRY_ASSIGN(fim_.repository, special_id(file, {"tokenizer.ggml.fim_rep_token_id"},
                                                 {"<|repo_name|>", "<repo_name>", "<reponame>"}));
  REDLINE_TRY_ASSIGN(fim_.file_separator,
                     special_id(file, {"tokenizer.ggml.fim_sep_token_id"}, {"<|file_sep|>", "<file_sep>"}));
  return {};
}

void vocabulary::mark_ends() {
  ends_.assign(size(), false);
  const auto mark = [&](std::optional<token> id) {
    if (id) ends_[static_cast<std::size_t>(*id)] = true;
  };
  mark(eos_);
  mark(eot_);
  mark(fim_.pad);
  mark(fim_.repository);
  mark(fim_.file_separator);
  const bool harmony = has_harmony_ends(*this);
  // Considers only control tokens: "</s>" as a user-defined token is also a piece of ordinary HTML.
  for (const std::string_view text :
       {"<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", message_end, "<|EOT|>", "<EOT>",
        "<end_of_turn>", "<turn|>", "</s>", "<eos>", "<｜end▁of▁sentence｜>", "<|return|>", "<|call|>"}) {
    const bool is_of_harmony = text == "<|return|>" || text == "<|call|>";
    if ((harmony && text == message_end) || (is_of_harmony && !harmony)) continue;
    const auto id = find(text);
    if (id && type(*id) == token_type::control) mark(id);
  }
}

void vocabulary::compute_digest() {
  fnv1a digest;
  digest.add(static_cast<std::uint8_t>(kind_));
  std::size_t used = size();
  while (used > 0 && types_[used - 1] == token_type::unused) --used;
  for (std::size_t i = 0; i < used; ++i) {
    for (std::size_t length = texts_[i].size(), n = 0; n < 4; ++n, length >>= 8)
      digest.add(static_cast<std::uint8_t>(length));
    digest.add(texts_[i]);
  }
  digest_ = digest.value();
}

}  // namespace redline::text
