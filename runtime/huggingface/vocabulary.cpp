#include "runtime/huggingface/vocabulary.hpp"

#include "runtime/base/hex.hpp"

namespace redline::huggingface {
namespace {

/// Puts a token at its id, which must be free unless it already has the same text.
result<void> place(vocabulary& words, const json_object& from, std::string_view field, const std::string& text,
                   std::uint64_t id, gguf::token_kind kind) {
  const auto refuse = [&](const std::string& why) {
    return from.malformed(field, "token " + quote_bytes(text) + ": " + why);
  };
  if (id >= words.texts.size()) {
    return refuse("expected an id below the " + std::to_string(words.texts.size()) + " rows of the embedding, found " +
                  std::to_string(id));
  }
  const auto known = words.find(text);
  if (known && *known != id) {
    return refuse("expected one id, found " + std::to_string(*known) + " and " + std::to_string(id));
  }
  if (words.kinds[id] != gguf::token_kind::unused && words.texts[id] != text) {
    return refuse("its id " + std::to_string(id) + " is also the id of " + quote_bytes(words.texts[id]));
  }
  words.texts[id] = text;
  words.kinds[id] = kind;
  words.ids.emplace(text, static_cast<std::uint32_t>(id));
  return {};
}

result<void> read_tokens(const json_object& model, vocabulary& words) {
  REDLINE_TRY_ASSIGN(const json_object vocab, model.object("vocab"));
  words.ids.reserve(vocab.value().size());
  for (const auto& [text, id] : vocab.value().items()) {
    if (!id.is_number_unsigned()) {
      return model.malformed("vocab", "token " + quote_bytes(text) + ": expected an id, found " + show_json(id));
    }
    REDLINE_TRY(place(words, model, "vocab", text, id.get<std::uint64_t>(), gguf::token_kind::normal));
  }
  if (!model.has("unk_token")) return {};
  REDLINE_TRY_ASSIGN(const std::string unknown, model.text("unk_token"));
  words.unknown = words.find(unknown);
  if (!words.unknown) {
    return model.malformed("unk_token", "expected a token of the vocabulary, found " + quote_bytes(unknown));
  }
  return {};
}

/// Reads "left right", or ["left", "right"] as in newer files, where parts may contain spaces.
result<std::pair<std::string, std::string>> read_merge(const json_object& model, const json& entry) {
  const auto refuse = [&] {
    return model.malformed(
        "merges", "expected two strings separated by a space, or an array of two strings, found " + show_json(entry));
  };
  std::pair<std::string, std::string> sides;
  if (entry.is_string()) {
    const auto& text = entry.get_ref<const std::string&>();
    const std::size_t blank = text.find(' ');
    if (blank == std::string::npos) return refuse();
    sides = {text.substr(0, blank), text.substr(blank + 1)};
  } else {
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() || !entry[1].is_string()) return refuse();
    sides = {entry[0].get<std::string>(), entry[1].get<std::string>()};
  }
  const auto usable = [](const std::string& side) { return !side.empty() && side.find(' ') == std::string::npos; };
  if (!usable(sides.first) || !usable(sides.second)) return refuse();
  return sides;
}

result<void> read_merges(const json_object& model, vocabulary& words) {
  REDLINE_TRY_ASSIGN(const json* merges, model.array("merges"));
  words.merges.reserve(merges->size());
  for (const json& entry : *merges) {
    REDLINE_TRY_ASSIGN(auto sides, read_merge(model, entry));
    for (const std::string& text : {sides.first, sides.second, sides.first + sides.second}) {
      if (words.find(text)) continue;
      return model.malformed("merges", "expected tokens of the vocabulary, found " + quote_bytes(text) + " in merge " +
                                           std::to_string(words.merges.size()));
    }
    words.merges.push_back(std::move(sides));
  }
  return {};
}

result<void> read_added(const json_object& tokenizer, vocabulary& words) {
  if (!tokenizer.has("added_tokens")) return {};
  REDLINE_TRY_ASSIGN(const json* added, tokenizer.array("added_tokens"));
  for (std::size_t i = 0; i < added->size(); ++i) {
    const std::string path = "added_tokens[" + std::to_string(i) + "]";
    REDLINE_TRY_ASSIGN(const json_object token, json_object::of((*added)[i], tokenizer.file(), path));
    REDLINE_TRY_ASSIGN(const std::string text, token.text("content"));
    REDLINE_TRY_ASSIGN(const std::uint64_t id, token.whole("id", 0, words.texts.size() - 1));
    for (const char* strips : {"lstrip", "rstrip", "single_word"}) {
      REDLINE_TRY_ASSIGN(const bool set, token.flag_or(strips, false));
      if (set) return token.unsupported(strips, "expected false, because a GGUF file cannot record it");
    }
    REDLINE_TRY_ASSIGN(const bool special, token.flag_or("special", false));
    REDLINE_TRY(
        place(words, token, "id", text, id, special ? gguf::token_kind::control : gguf::token_kind::user_defined));
  }
  return {};
}

result<void> refuse_settings(const json_object& model) {
  REDLINE_TRY_ASSIGN(const std::string type, model.text("type"));
  if (type != "BPE") return model.unsupported("type", "expected 'BPE', found " + quote_bytes(type));
  for (const char* affix : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    REDLINE_TRY_ASSIGN(const std::string text, model.text_or(affix, ""));
    if (!text.empty()) return model.unsupported(affix, "expected none, found " + quote_bytes(text));
  }
  if (model.has("dropout"))
    return model.unsupported("dropout", "expected none, found " + show_json(*model.find("dropout")));
  return {};
}

}  // namespace

std::optional<std::uint32_t> vocabulary::find(const std::string& text) const {
  const auto it = ids.find(text);
  return it == ids.end() ? std::nullopt : std::optional(it->second);
}

result<vocabulary> read_vocabulary(const json_object& tokenizer, std::uint32_t size) {
  REDLINE_TRY_ASSIGN(const json_object model, tokenizer.object("model"));
  REDLINE_TRY(refuse_settings(model));
  vocabulary words;
  for (std::uint32_t id = 0; id < size; ++id) words.texts.push_back(gguf::unused_token(id));
  words.kinds.assign(size, gguf::token_kind::unused);
  REDLINE_TRY(read_tokens(model, words));
  REDLINE_TRY(read_merges(model, words));
  REDLINE_TRY(read_added(tokenizer, words));
  return words;
}

}  // namespace redline::huggingface
