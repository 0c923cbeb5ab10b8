// The exact token ids that other implementations give, with real vocabularies and real code.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "runtime/text/tokenizer.hpp"
#include "tests/support/test_data.hpp"

namespace redline::text {
namespace {

using ids = std::vector<token>;

std::shared_ptr<const tokenizer> load(const std::string& path) {
  auto file = gguf::gguf_file::open(path);
  if (!file) ADD_FAILURE() << file.error().describe();
  if (!file) return nullptr;
  auto loaded = tokenizer::from_file(**file);
  if (!loaded) ADD_FAILURE() << loaded.error().describe();
  return loaded ? *loaded : nullptr;
}

std::vector<std::string> cases_of(const std::string& inputs) {
  constexpr std::string_view border = "\n__ggml_vocab_test__\n";
  std::vector<std::string> out;
  std::size_t at = 0;
  for (;;) {
    const std::size_t next = inputs.find(border, at);
    if (next == std::string::npos) break;
    out.push_back(inputs.substr(at, next - at));
    at = next + border.size();
  }
  return out;
}

std::vector<ids> ids_of(const std::string& outputs) {
  std::vector<ids> out;
  std::istringstream lines(outputs);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream numbers(line);
    ids& row = out.emplace_back();
    for (token id = 0; numbers >> id;) row.push_back(id);
  }
  return out;
}

struct vocabulary_files {
  const char* name;
  const char* vocabulary;
};

std::ostream& operator<<(std::ostream& out, const vocabulary_files& files) { return out << files.name; }

std::string hex_decoded(const std::string& hex) {
  std::string out;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    out.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return out;
}

class tokenizer_vectors : public testing::TestWithParam<vocabulary_files> {};

TEST_P(tokenizer_vectors, gives_the_reference_ids_of_the_test_cases) {
  const std::string name = GetParam().name;
  const auto inputs = test::data_path("vocab/ggml-vocab-" + name + ".gguf.inp");
  const auto outputs = test::data_path("vocab/ggml-vocab-" + name + ".gguf.out");
  const auto vocabulary = test::data_path("vocab/" + std::string(GetParam().vocabulary));
  if (!inputs || !outputs || !vocabulary) GTEST_SKIP() << "the vocabulary data is absent";
  const auto words = load(*vocabulary);
  ASSERT_NE(words, nullptr);
  const auto texts = cases_of(test::read_file(*inputs));
  const auto wanted = ids_of(test::read_file(*outputs));
  ASSERT_EQ(texts.size(), 46U);
  ASSERT_EQ(texts.size(), wanted.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(words->encode(texts[i]), wanted[i]) << "case " << i << ": " << texts[i];
    EXPECT_EQ(words->decode(wanted[i], {.strip_space_prefix = true}).value(), texts[i]) << "case " << i;
  }
}

TEST_P(tokenizer_vectors, gives_the_reference_ids_of_real_code) {
  const auto pieces = test::data_path("vocab/code_vectors.jsonl");
  const auto vocabulary = test::data_path("vocab/" + std::string(GetParam().vocabulary));
  if (!pieces || !vocabulary) GTEST_SKIP() << "the vocabulary data is absent";
  const auto words = load(*vocabulary);
  ASSERT_NE(words, nullptr);
  std::istringstream lines(test::read_file(*pieces));
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const auto row = nlohmann::json::parse(line);
    const std::string text = hex_decoded(row["hex"]);
    const ids wanted = row["ids"][GetParam().name];
    EXPECT_EQ(words->encode(text), wanted) << row["id"];
    EXPECT_EQ(words->decode(wanted, {.strip_space_prefix = true}).value(), text) << row["id"];
  }
  EXPECT_EQ(count, 64U);
}

INSTANTIATE_TEST_SUITE_P(real, tokenizer_vectors,
                         testing::Values(vocabulary_files{"gpt-2", "ggml-vocab-gpt-2.gguf"},
                                         vocabulary_files{"qwen2", "ggml-vocab-qwen2-rebuilt.gguf"},
                                         vocabulary_files{"deepseek-coder", "ggml-vocab-deepseek-coder.gguf"},
                                         vocabulary_files{"starcoder", "ggml-vocab-starcoder.gguf"},
                                         vocabulary_files{"llama-spm", "ggml-vocab-llama-spm.gguf"},
                                         vocabulary_files{"phi-3", "ggml-vocab-phi-3.gguf"}));

TEST(tokenizer_vectors, gives_the_reference_ids_of_the_demonstration_prompts) {
  const auto words = load(test::source_path("bench/demo_models/demo-target.gguf"));
  ASSERT_NE(words, nullptr);
  const auto vectors = nlohmann::json::parse(test::read_file(test::source_path("bench/demo_models/vectors.json")));
  EXPECT_EQ(vectors["cases"].size(), 20U);
  for (const auto& row : vectors["cases"]) {
    const std::string text = row["text"];
    const ids wanted = row["ids"];
    EXPECT_EQ(words->encode(text, {.parse_special = true}), wanted) << row["name"];
    EXPECT_EQ(words->decode(wanted, {.render_special = true}).value(), text) << row["name"];
    for (const char* model : {"target", "draft"}) {
      const ids continuation = row[model]["continuation"];
      // JSON contains only text, so invalid UTF-8 became U+FFFD.
      const std::string text_alone = nlohmann::json(words->decode(continuation).value())
                                         .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
      EXPECT_EQ(nlohmann::json::parse(text_alone), row[model]["text"]) << row["name"];
    }
  }
  for (const token stop : vectors["stop"]) EXPECT_TRUE(words->is_end_of_generation(stop)) << stop;
}

TEST(tokenizer_vectors, draft_and_target_of_the_demonstration_share_a_digest) {
  const auto target = load(test::source_path("bench/demo_models/demo-target.gguf"));
  const auto draft = load(test::source_path("bench/demo_models/demo-draft.gguf"));
  ASSERT_NE(target, nullptr);
  ASSERT_NE(draft, nullptr);
  EXPECT_EQ(target->digest(), draft->digest());
}

}  // namespace
}  // namespace redline::text
