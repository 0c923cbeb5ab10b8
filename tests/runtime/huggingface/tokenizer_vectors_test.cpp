// Real vocabularies, written as a tokenizer.json and converted back, still give the same ids for real code.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <tuple>

#include "runtime/huggingface/tokenizer.hpp"
#include "runtime/text/tokenizer.hpp"
#include "tests/support/hf_model.hpp"
#include "tests/support/test_data.hpp"

namespace redline::huggingface {
namespace {

struct vocabulary_case {
  const char* file;
  json pre_tokenizer;
  json normalizer;
};

std::ostream& operator<<(std::ostream& out, const vocabulary_case& c) { return out << c.file; }

json sequence(const char* list, const json& steps) { return {{"type", "Sequence"}, {list, steps}}; }
json split(const char* expression) {
  return {{"type", "Split"}, {"pattern", {{"Regex", expression}}}, {"behavior", "Isolated"}, {"invert", false}};
}
const json words = {{"type", "ByteLevel"}, {"add_prefix_space", false}};
const json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
const json digits = {{"type", "Digits"}, {"individual_digits", true}};
const json prepend = {{"type", "Prepend"}, {"prepend", "▁"}};
const json replace = {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "▁"}};

/// Every cut of every piece into two pieces, the best score first, as in exported SentencePiece models.
json merges_by_score(const text::vocabulary& v) {
  const auto normal = [&](const std::string& text) {
    const auto id = v.find(text);
    return id && v.type(*id) == text::token_type::normal;
  };
  std::vector<std::tuple<float, std::size_t, std::string, std::string>> all;
  for (token id = 0; v.contains(id); ++id) {
    const std::string text(v.text(id));
    if (!normal(text)) continue;
    for (std::size_t at = 1; at < text.size(); ++at) {
      if (!normal(text.substr(0, at)) || !normal(text.substr(at))) continue;
      all.emplace_back(-v.score(id), at, text.substr(0, at), text.substr(at));
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return std::tie(std::get<0>(a), std::get<1>(a)) < std::tie(std::get<0>(b), std::get<1>(b));
  });
  json merges = json::array();
  for (const auto& [rank, at, left, right] : all) merges.push_back({left, right});
  return merges;
}

json tokenizer_json_of(const gguf::gguf_file& file, const text::vocabulary& v, const vocabulary_case& c) {
  json vocab = json::object(), added = json::array();
  json model = {{"type", "BPE"}, {"byte_fallback", v.kind() == text::vocabulary_kind::sentencepiece}};
  for (token id = 0; v.contains(id); ++id) {
    const std::string text(v.text(id));
    const text::token_type type = v.type(id);
    if (type == text::token_type::unused) continue;
    if (type == text::token_type::unknown) model["unk_token"] = text;
    if (type == text::token_type::control || type == text::token_type::user_defined) {
      added.push_back(test::added_token(static_cast<std::size_t>(id), text, type == text::token_type::control));
    } else {
      vocab[text] = id;
    }
  }
  model["vocab"] = vocab;
  model["merges"] = model["byte_fallback"].get<bool>() ? merges_by_score(v)
                                                       : json(file.get_array("tokenizer.ggml.merges").value()->strings);
  return {{"model", model}, {"added_tokens", added}, {"pre_tokenizer", c.pre_tokenizer}, {"normalizer", c.normalizer}};
}

std::shared_ptr<const text::tokenizer> through_json(const gguf::gguf_file& file, const text::vocabulary& v,
                                                    const vocabulary_case& c) {
  const json tokenizer = parse_document(tokenizer_json_of(file, v, c).dump(), "tokenizer.json").value();
  const json nothing = json::object();
  json config = json::object();
  if (v.unknown()) config["unk_token"] = v.text(*v.unknown());
  gguf::gguf_writer out;
  const auto put = put_tokenizer({.tokenizer = json_object::of(tokenizer, "tokenizer.json").value(),
                                  .config = json_object::of(nothing, "config.json").value(),
                                  .tokenizer_config = json_object::of(config, "tokenizer_config.json").value()},
                                 static_cast<std::uint32_t>(v.size()), out);
  if (!put) throw std::runtime_error(put.error().describe());
  return text::tokenizer::from_file(*gguf::gguf_file::from_bytes(out.bytes(), "out.gguf").value()).value();
}

std::string hex_decoded(const std::string& hex) {
  std::string out;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    out.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return out;
}

class tokenizer_vectors : public testing::TestWithParam<vocabulary_case> {};

TEST_P(tokenizer_vectors, a_real_vocabulary_keeps_its_ids) {
  const auto path = test::data_path("vocab/" + std::string(GetParam().file));
  const auto pieces = test::data_path("vocab/code_vectors.jsonl");
  if (!path || !pieces) GTEST_SKIP() << "the vocabulary data is absent";
  const auto file = gguf::gguf_file::open(*path).value();
  const auto before = text::tokenizer::from_file(*file).value();
  const auto after = through_json(*file, before->vocab(), GetParam());
  ASSERT_EQ(after->size(), before->size());
  std::istringstream lines(test::read_file(*pieces));
  for (std::string line; std::getline(lines, line);) {
    const std::string text = hex_decoded(json::parse(line)["hex"]);
    EXPECT_EQ(after->encode(text), before->encode(text)) << text;
  }
  for (const char* text :
       {"    deep\n\t\tindentation        x", "", " ", "a  b   c", "\r\n\r\n", "123456 7,8.9", "naïve 文字 🙂"}) {
    EXPECT_EQ(after->encode(text), before->encode(text)) << text;
  }
}

INSTANTIATE_TEST_SUITE_P(
    real, tokenizer_vectors,
    testing::Values(
        vocabulary_case{"ggml-vocab-gpt-2.gguf", words, nullptr},
        vocabulary_case{"ggml-vocab-qwen2-rebuilt.gguf", test::split_into_bytes(test::qwen2_words), {{"type", "NFC"}}},
        vocabulary_case{"ggml-vocab-starcoder.gguf", sequence("pretokenizers", {digits, words}), nullptr},
        vocabulary_case{"ggml-vocab-deepseek-coder.gguf",
                        sequence("pretokenizers", {split("[\r\n]"), split("\\s?\\p{L}+"), split("\\s?\\p{P}+"),
                                                   split("[一-龥ࠀ-一가-퟿]+"), digits, bytes}),
                        sequence("normalizers", json::array())},
        vocabulary_case{"ggml-vocab-llama-spm.gguf", nullptr, sequence("normalizers", {prepend, replace})}));

}  // namespace
}  // namespace redline::huggingface
