#include "runtime/huggingface/tokenizer.hpp"

#include <limits>
#include <vector>

#include "runtime/base/hex.hpp"
#include "runtime/huggingface/pipeline.hpp"
#include "runtime/huggingface/sentencepiece.hpp"
#include "runtime/huggingface/vocabulary.hpp"

namespace redline::huggingface {
namespace {

/// Reads a token such as "bos_token" of tokenizer_config.json: a text, or an object with the text as its content.
result<std::optional<std::string>> token_text(const json_object& config, const std::string& name) {
  const json* found = config.find(name);
  if (found == nullptr) return std::optional<std::string>();
  if (!found->is_object()) {
    REDLINE_TRY_ASSIGN(std::string text, config.text(name));
    return std::optional(std::move(text));
  }
  REDLINE_TRY_ASSIGN(const json_object token, config.object(name));
  REDLINE_TRY_ASSIGN(std::string text, token.text("content"));
  return std::optional(std::move(text));
}

/// Reads an id such as "eos_token_id", or the first of several; a negative one means none.
result<std::optional<std::uint32_t>> token_id(const json_object& config, const std::string& name, std::size_t tokens) {
  const json* found = config.find(name);
  if (found != nullptr && found->is_array()) found = found->empty() ? nullptr : &found->front();
  if (found == nullptr || (found->is_number_integer() && found->get<std::int64_t>() < 0)) {
    return std::optional<std::uint32_t>();
  }
  if (!found->is_number_unsigned() || found->get<std::uint64_t>() >= tokens) {
    return config.malformed(
        name, "expected an id below the " + std::to_string(tokens) + " of the vocabulary, found " + show_json(*found));
  }
  return std::optional(static_cast<std::uint32_t>(found->get<std::uint64_t>()));
}

/// The id of the token with a role: "bos", "eos", "pad" or "unk".
result<std::optional<std::uint32_t>> special_id(const tokenizer_files& files, const vocabulary& words,
                                                const std::string& role) {
  if (files.tokenizer_config) {
    REDLINE_TRY_ASSIGN(const auto text, token_text(*files.tokenizer_config, role + "_token"));
    if (text) {
      const auto id = words.find(*text);
      if (id) return id;
      return files.tokenizer_config->malformed(role + "_token",
                                               "expected a token of tokenizer.json, found " + quote_bytes(*text));
    }
  }
  if (files.generation_config) {
    REDLINE_TRY_ASSIGN(const auto id, token_id(*files.generation_config, role + "_token_id", words.texts.size()));
    if (id) return id;
  }
  return token_id(files.config, role + "_token_id", words.texts.size());
}

/// The tokens that answers never have.
result<std::vector<std::int32_t>> suppressed_tokens(const tokenizer_files& files) {
  constexpr std::string_view name = "suppress_tokens";
  std::vector<std::int32_t> ids;
  const json* const found = files.generation_config ? files.generation_config->find(name) : nullptr;
  if (found == nullptr || found->is_null()) return ids;
  REDLINE_TRY_ASSIGN(const json* all, files.generation_config->array(name));
  for (const json& id : *all) {
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() > std::numeric_limits<std::int32_t>::max())
      return files.generation_config->malformed(name, "expected token ids, found " + show_json(id));
    ids.push_back(id.get<std::int32_t>());
  }
  return ids;
}

/// The special tokens that the post-processor puts around a text.
struct surroundings {
  std::optional<std::string> front;
  std::optional<std::string> back;
};

/// Reads [SpecialToken] Sequence [SpecialToken]; a GGUF file cannot express more than one on a side.
result<surroundings> read_template(const json_object& step) {
  REDLINE_TRY_ASSIGN(const json* items, step.array("single"));
  surroundings out;
  bool seen = false;  // a Sequence was seen
  for (const json& item : *items) {
    REDLINE_TRY_ASSIGN(const json_object each, json_object::of(item, step.file(), step.path_of("single")));
    if (each.has("Sequence")) {
      if (seen) return step.unsupported("single", "expected one Sequence, found several");
      seen = true;
      continue;
    }
    REDLINE_TRY_ASSIGN(const json_object special, each.object("SpecialToken"));
    std::optional<std::string>& side = seen ? out.back : out.front;
    if (side) return step.unsupported("single", "expected at most one special token on each side");
    REDLINE_TRY_ASSIGN(side.emplace(), special.text("id"));
  }
  return out;
}

result<surroundings> read_surroundings(const json_object& tokenizer) {
  REDLINE_TRY_ASSIGN(const auto steps, read_steps(tokenizer, "post_processor"));
  surroundings out;
  for (const json_object& step : steps) {
    REDLINE_TRY_ASSIGN(const std::string type, step.text("type"));
    if (type == "ByteLevel") continue;  // changes offsets, which are not used here
    if (type != "TemplateProcessing") {
      return step.unsupported("type", "expected 'ByteLevel' or 'TemplateProcessing', found " + quote_bytes(type));
    }
    REDLINE_TRY_ASSIGN(out, read_template(step));
  }
  return out;
}

/// Whether a role's token is added at its end of a text. tokenizer_config takes precedence over the post-processor, as
/// in the classes that read the former and replace the latter.
result<bool> adds_token(const tokenizer_files& files, const vocabulary& words, const std::string& role,
                        std::optional<std::uint32_t> id, const std::optional<std::string>& around) {
  const std::string name = "add_" + role + "_token";
  if (files.tokenizer_config && files.tokenizer_config->has(name)) return files.tokenizer_config->flag(name);
  if (!around) return false;
  if (id && words.find(*around) == id) return true;
  return files.tokenizer.unsupported("post_processor",
                                     "expected the " + role + " token, found " + quote_bytes(*around));
}

result<void> put_special_ids(const tokenizer_files& files, const vocabulary& words, gguf::gguf_writer& to) {
  const std::string prefix = "tokenizer.ggml.";
  REDLINE_TRY_ASSIGN(const auto bos, special_id(files, words, "bos"));
  REDLINE_TRY_ASSIGN(const auto eos, special_id(files, words, "eos"));
  REDLINE_TRY_ASSIGN(const auto pad, special_id(files, words, "pad"));
  // Byte-level models have none. If a byte has no token, the "unk" token replaces it.
  REDLINE_TRY_ASSIGN(const auto stand_in, special_id(files, words, "unk"));
  const auto unknown = words.unknown ? words.unknown : stand_in;
  if (bos) to.put_u32(prefix + "bos_token_id", *bos);
  if (eos) to.put_u32(prefix + "eos_token_id", *eos);
  if (pad) to.put_u32(prefix + "padding_token_id", *pad);
  if (unknown) to.put_u32(prefix + "unknown_token_id", *unknown);
  REDLINE_TRY_ASSIGN(const auto suppressed, suppressed_tokens(files));
  if (!suppressed.empty()) to.put_i32s(prefix + "suppress_tokens", suppressed);
  REDLINE_TRY_ASSIGN(const surroundings around, read_surroundings(files.tokenizer));
  REDLINE_TRY_ASSIGN(const bool add_bos, adds_token(files, words, "bos", bos, around.front));
  REDLINE_TRY_ASSIGN(const bool add_eos, adds_token(files, words, "eos", eos, around.back));
  to.put_bool(prefix + "add_bos_token", add_bos);
  to.put_bool(prefix + "add_eos_token", add_eos);
  return {};
}

/// Reads tokenizer_config's chat_template: one text, or several with names, of which "default" is for conversations.
result<std::optional<std::string>> read_chat_template(const tokenizer_files& files) {
  constexpr std::string_view name = "chat_template";
  if (files.chat_template) return files.chat_template;
  const json* found = files.tokenizer_config ? files.tokenizer_config->find(name) : nullptr;
  if (found == nullptr) return std::optional<std::string>();
  if (!found->is_array()) {
    REDLINE_TRY_ASSIGN(std::string text, files.tokenizer_config->text(name));
    return std::optional(std::move(text));
  }
  for (const json& entry : *found) {
    const std::string& file = files.tokenizer_config->file();
    REDLINE_TRY_ASSIGN(const json_object each, json_object::of(entry, file, std::string(name)));
    REDLINE_TRY_ASSIGN(const std::string its_name, each.text("name"));
    if (its_name != "default") continue;
    REDLINE_TRY_ASSIGN(std::string text, each.text("template"));
    return std::optional(std::move(text));
  }
  return std::optional<std::string>();
}

void put_words(const vocabulary& words, gguf::gguf_writer& to) {
  std::vector<std::int32_t> types;
  types.reserve(words.kinds.size());
  for (const gguf::token_kind kind : words.kinds) types.push_back(static_cast<std::int32_t>(kind));
  to.put_strings("tokenizer.ggml.tokens", words.texts);
  to.put_i32s("tokenizer.ggml.token_type", types);
}

result<void> put_byte_level(const json_object& tokenizer, const vocabulary& words, gguf::gguf_writer& to) {
  REDLINE_TRY_ASSIGN(const std::string cutter, byte_level_name(tokenizer));
  std::vector<std::string> merges;
  merges.reserve(words.merges.size());
  for (const auto& [left, right] : words.merges) merges.push_back(left + " " + right);
  to.put_string("tokenizer.ggml.model", "gpt2");
  to.put_string("tokenizer.ggml.pre", cutter);
  put_words(words, to);
  to.put_strings("tokenizer.ggml.merges", merges);
  return {};
}

result<void> put_sentencepiece(const json_object& tokenizer, vocabulary& words, gguf::gguf_writer& to) {
  REDLINE_TRY_ASSIGN(const bool space_prefix, adds_space_prefix(tokenizer));
  REDLINE_TRY(mark_sentencepiece_kinds(tokenizer, words));
  REDLINE_TRY_ASSIGN(const std::vector<float> scores, sentencepiece_scores(tokenizer, words));
  to.put_string("tokenizer.ggml.model", "llama");
  to.put_string("tokenizer.ggml.pre", "default");
  put_words(words, to);
  to.put_f32s("tokenizer.ggml.scores", scores);
  to.put_bool("tokenizer.ggml.add_space_prefix", space_prefix);
  return {};
}

}  // namespace

result<void> put_tokenizer(const tokenizer_files& files, std::uint32_t size, gguf::gguf_writer& to) {
  REDLINE_TRY_ASSIGN(vocabulary words, read_vocabulary(files.tokenizer, size));
  REDLINE_TRY_ASSIGN(const json_object model, files.tokenizer.object("model"));
  REDLINE_TRY_ASSIGN(const bool bytes_fall_back, model.flag_or("byte_fallback", false));
  REDLINE_TRY(bytes_fall_back ? put_sentencepiece(files.tokenizer, words, to)
                              : put_byte_level(files.tokenizer, words, to));
  REDLINE_TRY(put_special_ids(files, words, to));
  REDLINE_TRY_ASSIGN(const auto chat_template, read_chat_template(files));
  if (chat_template) to.put_string("tokenizer.chat_template", *chat_template);
  return {};
}

}  // namespace redline::huggingface
