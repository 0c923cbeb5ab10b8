#include "runtime/huggingface/tokenizer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/text/pretokenizer_table.hpp"
#include "runtime/text/tokenizer.hpp"
#include "tests/support/hf_model.hpp"

namespace redline::huggingface {
namespace {

using testing::HasSubstr;
using tokenizer_pointer = std::shared_ptr<const text::tokenizer>;

constexpr std::uint32_t size = test::tiny_model::vocabulary;

/// The documents of one model, as files would contain them.
struct documents {
  json tokenizer = test::hf_tokenizer_of(test::make_tiny_model());
  json config = json::object();
  json tokenizer_config;
  json generation_config;
  std::optional<std::string> chat_template;
};

result<std::shared_ptr<const gguf::gguf_file>> put(const documents& d, std::uint32_t rows = size) {
  const auto parsed = [](const json& document, const std::string& name) {
    return parse_document(document.dump(), name).value();
  };
  const json tokenizer = parsed(d.tokenizer, "tokenizer.json"), config = parsed(d.config, "config.json");
  const json mine = parsed(d.tokenizer_config, "tokenizer_config.json");
  const json generation = parsed(d.generation_config, "generation_config.json");
  const auto optional_object = [](const json& document, const char* name) {
    return document.is_null() ? std::nullopt : std::optional(json_object::of(document, name).value());
  };
  gguf::gguf_writer out;
  REDLINE_TRY(
      put_tokenizer({json_object::of(tokenizer, "tokenizer.json").value(),
                     json_object::of(config, "config.json").value(), optional_object(mine, "tokenizer_config.json"),
                     optional_object(generation, "generation_config.json"), d.chat_template},
                    rows, out));
  return gguf::gguf_file::from_bytes(out.bytes(), "out.gguf");
}

tokenizer_pointer converted(const documents& d, std::uint32_t rows = size) {
  const auto file = put(d, rows);
  EXPECT_TRUE(file) << file.error().describe();
  const auto words = text::tokenizer::from_file(**file);
  EXPECT_TRUE(words) << words.error().describe();
  return *words;
}
std::string refusal(const documents& d, std::uint32_t rows = size) {
  const auto file = put(d, rows);
  return file ? "none" : file.error().context;
}
template<class Change>
std::string refusal_after(Change change) {
  documents d;
  change(d);
  return refusal(d);
}

// ---- byte-level

TEST(tokenizer, merges_may_be_texts_or_pairs) {
  documents d;
  const auto as_texts = converted(d);
  json pairs = json::array();
  for (const json& merge : d.tokenizer["model"]["merges"]) {
    const auto text = merge.get<std::string>();
    pairs.push_back({text.substr(0, 1), text.substr(2)});
  }
  d.tokenizer["model"]["merges"] = pairs;
  EXPECT_EQ(converted(d)->encode("then the other"), as_texts->encode("then the other"));
  EXPECT_LT(as_texts->encode("then").size(), 4U);
}

TEST(tokenizer, added_tokens_are_control_tokens_when_special_and_else_user_defined) {
  documents d;
  d.tokenizer["added_tokens"].push_back(test::added_token(300, "<tool_call>", false));
  d.tokenizer["added_tokens"].push_back(test::added_token(302, "<|stop|>", true));
  const auto words = converted(d, 304);
  EXPECT_EQ(words->vocab().type(300), text::token_type::user_defined);
  EXPECT_EQ(words->vocab().type(301), text::token_type::unused);
  EXPECT_EQ(words->vocab().type(302), text::token_type::control);
  EXPECT_EQ(words->encode("<tool_call>"), (std::vector<token>{300}));
  EXPECT_GT(words->encode("<|stop|>").size(), 1U);
  EXPECT_EQ(words->encode("<|stop|>", {.parse_special = true}), (std::vector<token>{302}));
}

TEST(tokenizer, pre_tokenizers_are_known_by_what_they_do) {
  const json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  const json words = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}};
  const json digits = {{"type", "Digits"}, {"individual_digits", true}};
  const auto split = [](const char* expression) {
    return json{{"type", "Split"}, {"pattern", {{"Regex", expression}}}, {"behavior", "Isolated"}, {"invert", false}};
  };
  const auto sequence = [](const json& steps) { return json{{"type", "Sequence"}, {"pretokenizers", steps}}; };
  std::string llama3 = test::qwen2_words;
  llama3.replace(llama3.find("|\\p{N}|"), 7, "|\\p{N}{1,3}|");
  const std::string tail = "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
  const std::string contraction = "(?i:'s|'t|'re|'ve|'m|'ll|'d)";
  const auto cased = [&](const std::string& suffix, const std::string& numbers) {
    const std::string any = "[^\\r\\n\\p{L}\\p{N}]?";
    const std::string upper = "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]";
    const std::string lower = "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]";
    return any + upper + "*" + lower + "+" + suffix + "|" + any + upper + "+" + lower + "*" + suffix + "|" + numbers +
           "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" + tail;
  };
  const std::vector<std::pair<json, std::string>> known = {
      {test::split_into_bytes(test::qwen2_words), "qwen2"},
      {test::split_into_bytes(contraction +
                              "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}|"
                              " ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" +
                              tail),
       "qwen35"},
      {test::split_into_bytes(cased(contraction + "?", "\\p{N}{1,3}")), "gpt-4o"},
      {test::split_into_bytes(cased("", "\\p{N}")), "tekken"},
      // This file contains the line ends themselves where others contain escapes.
      {test::split_into_bytes(contraction +
                              "|[^\r\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1}| ?[^\\s\\p{L}\\p{N}\r\n]+|\\s*[\r\n]+|"
                              "\\s+(?!\\S)|\\s+"),
       "seed-coder"},
      {sequence(
           {split("\\p{N}{1,3}"), split("[一-龥\u3040-ゟ゠-ヿ]+"),
            split("[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|"
                  " ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"),
            bytes}),
       "deepseek-v3"},
      {test::split_into_bytes(llama3), "llama-bpe"},
      {test::split_into_bytes(llama3), "glm4"},
      {words, "gpt-2"},
      {sequence(json::array({sequence(json::array({words}))})), "gpt-2"},
      {sequence({digits, words}), "starcoder"},
      {sequence({split("[\r\n]"), split("\\s?\\p{L}+"), split("\\s?\\p{P}+"), split("[一-龥ࠀ-一가-퟿]+"), digits,
                 bytes}),
       "deepseek-coder"}};
  for (const auto& [pre_tokenizer, name] : known) {
    documents d;
    d.tokenizer["pre_tokenizer"] = pre_tokenizer;
    d.tokenizer["model"]["ignore_merges"] = text::find_pretokenizer(name)->whole_pieces_first;
    EXPECT_EQ(converted(d)->vocab().pretokenizer_name(), name);
  }
}

TEST(tokenizer, a_pre_tokenizer_that_is_not_known_is_shown) {
  const auto with = [](const json& pre_tokenizer) {
    return refusal_after([&](documents& d) { d.tokenizer["pre_tokenizer"] = pre_tokenizer; });
  };
  EXPECT_THAT(with(nullptr),
              HasSubstr("tokenizer.json: pre_tokenizer: expected the pre-tokenizer of one of qwen2, qwen35, "
                        "llama-bpe, glm4, gpt-4o, tekken, seed-coder, gpt-2, starcoder, deepseek-coder, "
                        "deepseek-llm, deepseek-v3, found nothing"));
  EXPECT_THAT(with(test::split_into_bytes("[a-z]+")), HasSubstr("found 'Split([a-z]+), ByteLevel(bytes)'"));
  EXPECT_THAT(with({{"type", "ByteLevel"}}), HasSubstr("found 'ByteLevel(words, prefix)'"));
  EXPECT_THAT(with({{"type", "Whitespace"}}), HasSubstr("found 'Whitespace'"));
  EXPECT_THAT(with({{"type", "Sequence"}}), HasSubstr("pre_tokenizer.pretokenizers: expected an array"));
  EXPECT_THAT(with({{"type", "Sequence"}, {"pretokenizers", {5}}}),
              HasSubstr("pre_tokenizer.pretokenizers[0]: expected an object, found 5"));
  EXPECT_THAT(with({{"type", "Split"}, {"pattern", "x"}}), HasSubstr("pre_tokenizer.pattern: expected an object"));
  EXPECT_THAT(with("x"), HasSubstr("pre_tokenizer: expected an object, found 'x'"));
}

TEST(tokenizer, what_a_gguf_file_cannot_say_is_refused) {
  const auto with = [](const char* path, const json& value) {
    return refusal_after([&](documents& d) { d.tokenizer[json::json_pointer(path)] = value; });
  };
  EXPECT_THAT(with("/normalizer", {{"type", "Lowercase"}}),
              HasSubstr("normalizer: expected none or 'NFC', found 'Lowercase'"));
  EXPECT_THAT(with("/model/ignore_merges", true),
              HasSubstr("model.ignore_merges: expected false with a pre-tokenizer of qwen2"));
  EXPECT_THAT(with("/model/type", "WordPiece"), HasSubstr("model.type: expected 'BPE', found 'WordPiece'"));
  EXPECT_THAT(with("/model/dropout", 0.1), HasSubstr("model.dropout: expected none, found 0.1"));
  EXPECT_THAT(with("/model/end_of_word_suffix", "</w>"), HasSubstr("model.end_of_word_suffix: expected none"));
  EXPECT_THAT(with("/added_tokens/0/lstrip", true), HasSubstr("added_tokens[0].lstrip: expected false"));
  EXPECT_THAT(with("/post_processor", {{"type", "BertProcessing"}}), HasSubstr("found 'BertProcessing'"));
}

TEST(tokenizer, vocabularies_that_contradict_themselves_are_refused) {
  const auto vocab = [](const json& change) {
    return refusal_after([&](documents& d) { d.tokenizer["model"]["vocab"].update(change); });
  };
  EXPECT_THAT(vocab({{"new", 300}}), HasSubstr("model.vocab: token 'new': expected an id below the 300 rows"));
  EXPECT_THAT(vocab({{"new", 5}}), HasSubstr("its id 5 is also the id of"));
  EXPECT_THAT(vocab({{"new", -1}}), HasSubstr("token 'new': expected an id, found -1"));
  EXPECT_THAT(vocab({{"new", "5"}}), HasSubstr("token 'new': expected an id, found '5'"));
  EXPECT_THAT(refusal_after([](documents& d) { d.tokenizer["model"]["vocab"] = json::array(); }),
              HasSubstr("model.vocab: expected an object"));
  const auto added = [](std::size_t id, const char* text) {
    return refusal_after(
        [&](documents& d) { d.tokenizer["added_tokens"].push_back(test::added_token(id, text, true)); });
  };
  EXPECT_THAT(added(7, "th"), HasSubstr("token 'th': expected one id, found 256 and 7"));
  EXPECT_THAT(added(7, "<|x|>"), HasSubstr("its id 7 is also the id of"));
  EXPECT_THAT(added(300, "<|x|>"), HasSubstr("added_tokens[8].id: expected a whole number from 0 to 299, found 300"));
}

TEST(tokenizer, merges_of_what_are_no_tokens_are_refused) {
  const auto with = [](const json& merge) {
    return refusal_after([&](documents& d) { d.tokenizer["model"]["merges"][3] = merge; });
  };
  for (const json& broken : {json("th"), json(" th"), json("t "), json("t h e"), json(5), json({"t"}),
                             json({"t", "h", "e"}), json({"t", 5}), json({"", "t"}), json({"t ", "h"})}) {
    EXPECT_THAT(with(broken), HasSubstr("model.merges: expected two strings separated by a space")) << broken;
  }
  EXPECT_THAT(with("qq q"), HasSubstr("expected tokens of the vocabulary, found 'qq' in merge 3"));
  EXPECT_THAT(with("q z"), HasSubstr("expected tokens of the vocabulary, found 'qz' in merge 3"));
  EXPECT_THAT(refusal_after([](documents& d) { d.tokenizer["model"].erase("merges"); }),
              HasSubstr("model.merges: expected an array, found nothing"));
}

// ---- special tokens

TEST(tokenizer, special_ids_come_from_the_first_file_that_has_them) {
  documents d;
  d.config = {{"eos_token_id", 293}, {"bos_token_id", 292}, {"pad_token_id", -1}};
  EXPECT_EQ(converted(d)->vocab().eos(), 293);
  EXPECT_EQ(converted(d)->vocab().bos(), 292);
  EXPECT_EQ(converted(d)->vocab().padding(), std::nullopt);
  d.generation_config = {{"eos_token_id", {294, 292}}, {"pad_token_id", json::array()}};
  EXPECT_EQ(converted(d)->vocab().eos(), 294);
  d.tokenizer_config = {{"eos_token", {{"content", "<|endoftext|>"}}}, {"pad_token", "<|fim_pad|>"}};
  EXPECT_EQ(converted(d)->vocab().eos(), 292);
  EXPECT_EQ(converted(d)->vocab().padding(), 298);
}

TEST(tokenizer, tokens_that_answers_never_have_come_from_generation_config) {
  documents d;
  EXPECT_TRUE(converted(d)->vocab().suppressed().empty());
  d.generation_config = {{"suppress_tokens", {294, 17, 294, 999'999}}};
  EXPECT_EQ(converted(d)->vocab().suppressed(), (std::vector<token>{17, 294}));
  d.generation_config = {{"suppress_tokens", nullptr}};
  EXPECT_TRUE(converted(d)->vocab().suppressed().empty());
  EXPECT_THAT(refusal_after([](documents& wrong) {
                wrong.generation_config = {{"suppress_tokens", {-1}}};
              }),
              HasSubstr("generation_config.json: suppress_tokens: expected token ids, found -1"));
}

TEST(tokenizer, special_ids_that_are_none_are_refused) {
  const auto config = [](const json& value) {
    return refusal_after([&](documents& d) { d.config["eos_token_id"] = value; });
  };
  EXPECT_THAT(config(300),
              HasSubstr("config.json: eos_token_id: expected an id below the 300 of the vocabulary, found 300"));
  EXPECT_THAT(config("x"), HasSubstr("eos_token_id: expected an id"));
  EXPECT_THAT(refusal_after([](documents& d) {
                d.tokenizer_config = {{"bos_token", "<s>"}};
              }),
              HasSubstr("tokenizer_config.json: bos_token: expected a token of tokenizer.json, found '<s>'"));
  EXPECT_THAT(refusal_after([](documents& d) {
                d.tokenizer_config = {{"bos_token", 5}};
              }),
              HasSubstr("bos_token: expected a string, found 5"));
}

/// A post-processor that puts tokens around a text.
json template_of(const std::optional<std::string>& front, const std::optional<std::string>& back) {
  json single = json::array();
  if (front) single.push_back({{"SpecialToken", {{"id", *front}, {"type_id", 0}}}});
  single.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
  if (back) single.push_back({{"SpecialToken", {{"id", *back}, {"type_id", 0}}}});
  return {{"type", "TemplateProcessing"}, {"single", single}};
}

TEST(tokenizer, the_post_processor_says_what_is_put_around_a_text) {
  documents d;
  d.config = {{"bos_token_id", 292}, {"eos_token_id", 294}};
  const auto sequence =
      json{{"type", "Sequence"}, {"processors", {{{"type", "ByteLevel"}}, template_of("<|endoftext|>", std::nullopt)}}};
  d.tokenizer["post_processor"] = sequence;
  EXPECT_TRUE(converted(d)->vocab().adds_bos());
  EXPECT_FALSE(converted(d)->vocab().adds_eos());
  d.tokenizer["post_processor"] = template_of(std::nullopt, "<|im_end|>");
  EXPECT_FALSE(converted(d)->vocab().adds_bos());
  EXPECT_TRUE(converted(d)->vocab().adds_eos());
  d.tokenizer_config = {{"add_eos_token", false}, {"add_bos_token", true}};
  EXPECT_TRUE(converted(d)->vocab().adds_bos());
  EXPECT_FALSE(converted(d)->vocab().adds_eos());
}

TEST(tokenizer, other_surroundings_are_refused) {
  const auto with = [](const json& post_processor) {
    return refusal_after([&](documents& d) {
      d.config["bos_token_id"] = 292;
      d.tokenizer["post_processor"] = post_processor;
    });
  };
  EXPECT_THAT(with(template_of("<|im_end|>", std::nullopt)),
              HasSubstr("post_processor: expected the bos token, found '<|im_end|>'"));
  json twice = template_of("<|endoftext|>", std::nullopt);
  twice["single"].insert(twice["single"].begin(), twice["single"][0]);
  EXPECT_THAT(with(twice), HasSubstr("expected at most one special token on each side"));
  twice["single"].push_back({{"Sequence", {{"id", "B"}}}});
  twice["single"].erase(0);
  EXPECT_THAT(with(twice), HasSubstr("expected one Sequence, found several"));
  EXPECT_THAT(with({{"type", "TemplateProcessing"}}), HasSubstr("post_processor.single: expected an array"));
  EXPECT_THAT(with({{"type", "TemplateProcessing"}, {"single", {"x"}}}), HasSubstr("expected an object, found 'x'"));
}

TEST(tokenizer, the_chat_template_is_the_file_or_the_default_of_several) {
  documents d;
  EXPECT_EQ(converted(d)->vocab().chat_template(), std::nullopt);
  d.tokenizer_config = {{"chat_template", "one"}};
  EXPECT_EQ(converted(d)->vocab().chat_template(), "one");
  d.tokenizer_config["chat_template"] = {{{"name", "tool_use"}, {"template", "two"}},
                                         {{"name", "default"}, {"template", "three"}}};
  EXPECT_EQ(converted(d)->vocab().chat_template(), "three");
  d.chat_template = "four";
  EXPECT_EQ(converted(d)->vocab().chat_template(), "four");
}

// ---- SentencePiece

/// Pieces in the order of their ranks, merged in every way that their parts allow, as in exported SentencePiece models.
json sentencepiece(const std::vector<std::string>& pieces) {
  json vocab = {{"<unk>", 0}, {"<s>", 1}, {"</s>", 2}};
  const auto add = [&](const std::string& text) { vocab.emplace(text, vocab.size()); };
  for (int byte = 0; byte < 256; ++byte) {
    char text[8];
    std::snprintf(text, sizeof text, "<0x%02X>", byte);
    add(text);
  }
  for (const char* character : {"▁", "a", "b", "c", "d", "é"}) add(character);
  for (const std::string& piece : pieces) add(piece);
  json merges = json::array();
  for (const std::string& piece : pieces) {
    for (std::size_t at = 1; at < piece.size(); ++at) {
      if (vocab.contains(piece.substr(0, at)) && vocab.contains(piece.substr(at))) {
        merges.push_back({piece.substr(0, at), piece.substr(at)});
      }
    }
  }
  const json prepend = {{"type", "Prepend"}, {"prepend", "▁"}};
  const json replace = {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "▁"}};
  return {
      {"added_tokens",
       {test::added_token(0, "<unk>", true), test::added_token(1, "<s>", true), test::added_token(2, "</s>", true)}},
      {"normalizer", {{"type", "Sequence"}, {"normalizers", {prepend, replace}}}},
      {"pre_tokenizer", nullptr},
      {"post_processor", template_of("<s>", std::nullopt)},
      {"model",
       {{"type", "BPE"}, {"byte_fallback", true}, {"unk_token", "<unk>"}, {"vocab", vocab}, {"merges", merges}}}};
}

const std::vector<std::string> pieces = {"ab", "▁a", "bc", "abc", "▁ab", "cd", "▁▁", "bcd", "abcd", "éa", "▁▁▁▁"};

documents sentencepiece_documents() {
  documents d;
  d.tokenizer = sentencepiece(pieces);
  d.tokenizer_config = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};
  return d;
}

/// Applies merges as tokenizer.json defines them: always the one of lowest rank, leftmost first.
std::vector<std::string> merged_by_rank(std::vector<std::string> parts, const json& merges) {
  for (;;) {
    std::size_t best = merges.size(), where = 0;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      for (std::size_t rank = 0; rank < best; ++rank) {
        if (merges[rank][0] == parts[i] && merges[rank][1] == parts[i + 1]) best = rank, where = i;
      }
    }
    if (best == merges.size()) return parts;
    parts[where] += parts[where + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(where) + 1);
  }
}

TEST(tokenizer, a_sentencepiece_vocabulary_merges_as_its_ranks_say) {
  const documents d = sentencepiece_documents();
  const auto words = converted(d);
  EXPECT_EQ(words->vocab().kind(), text::vocabulary_kind::sentencepiece);
  EXPECT_TRUE(words->vocab().adds_bos());
  EXPECT_TRUE(words->vocab().adds_space_prefix());
  EXPECT_EQ(words->vocab().type(0), text::token_type::unknown);
  EXPECT_EQ(words->vocab().type(1), text::token_type::control);
  EXPECT_EQ(words->vocab().type(3), text::token_type::byte);
  test::tiny_random random(5);
  for (int round = 0; round < 300; ++round) {
    std::string text;
    std::vector<std::string> parts = {"▁"};
    for (std::uint32_t i = 0, n = 1 + random.below(12); i < n; ++i) {
      const char* character = std::array{"a", "b", "c", "d", "é", " "}[random.below(6)];
      text += character;
      parts.emplace_back(*character == ' ' ? "▁" : character);
    }
    std::vector<std::string> found;
    for (const token id : words->encode(text)) found.emplace_back(words->vocab().text(id));
    EXPECT_EQ(found, merged_by_rank(parts, d.tokenizer["model"]["merges"])) << text;
  }
  EXPECT_EQ(words->decode(words->encode("a ü b"), {.strip_space_prefix = true}).value(), "a ü b");
}

TEST(tokenizer, metaspace_says_whether_a_blank_goes_first) {
  const auto with = [](const json& metaspace) {
    documents d = sentencepiece_documents();
    d.tokenizer["normalizer"] = nullptr;
    d.tokenizer["pre_tokenizer"] = metaspace;
    d.tokenizer["pre_tokenizer"]["type"] = "Metaspace";
    d.tokenizer["pre_tokenizer"]["replacement"] = "▁";
    return d;
  };
  EXPECT_TRUE(converted(with({{"prepend_scheme", "first"}, {"split", false}}))->vocab().adds_space_prefix());
  EXPECT_FALSE(converted(with({{"prepend_scheme", "never"}, {"split", false}}))->vocab().adds_space_prefix());
  EXPECT_THAT(refusal(with({{"add_prefix_space", true}})),
              HasSubstr("expected spaces to become U+2581 and no other step"));
}

TEST(tokenizer, sentencepiece_vocabularies_that_merge_otherwise_are_refused) {
  documents d = sentencepiece_documents();
  auto& merges = d.tokenizer["model"]["merges"];
  merges.erase(std::find(merges.begin(), merges.end(), json({"b", "cd"})));
  EXPECT_THAT(refusal(d), HasSubstr("found none for 'b' and 'cd'"));
  d = sentencepiece_documents();
  d.tokenizer["model"]["vocab"].erase("<0x41>");
  EXPECT_THAT(refusal(d), HasSubstr("expected a token for every byte, as byte_fallback requires, found no '<0x41>'"));
  d = sentencepiece_documents();
  d.tokenizer["model"]["unk_token"] = "<what>";
  EXPECT_THAT(refusal(d), HasSubstr("model.unk_token: expected a token of the vocabulary, found '<what>'"));
}

}  // namespace
}  // namespace redline::huggingface
