#include "runtime/text/vocabulary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/runtime/text/tiny_vocabulary.hpp"

namespace redline::text {
namespace {

using testing::HasSubstr;

std::shared_ptr<const gguf::gguf_file> opened(const gguf::gguf_writer& writer) {
  return std::move(*gguf::gguf_file::from_bytes(writer.bytes(), "tiny.gguf"));
}

vocabulary loaded(const gguf::gguf_writer& writer) {
  auto vocab = vocabulary::load(*opened(writer));
  EXPECT_TRUE(vocab) << (vocab ? "" : vocab.error().describe());
  return std::move(*vocab);
}

std::string refusal(const gguf::gguf_writer& writer, errc code = errc::file_malformed) {
  const auto vocab = vocabulary::load(*opened(writer));
  EXPECT_FALSE(vocab);
  if (vocab) return "";
  EXPECT_EQ(vocab.error().code, code);
  EXPECT_THAT(vocab.error().context, testing::StartsWith("tiny.gguf: metadata 'tokenizer.ggml."));
  return vocab.error().context;
}

TEST(vocabulary, knows_texts_types_and_ids) {
  const auto tiny = test::tiny_bpe();
  gguf::gguf_writer writer = tiny.writer();
  writer.put_u32("tokenizer.ggml.eos_token_id", static_cast<std::uint32_t>(tiny.id("<|end|>")));
  writer.put_bool("tokenizer.ggml.add_bos_token", true);
  writer.put_string("tokenizer.chat_template", "{{ x }}");
  const vocabulary vocab = loaded(writer);
  EXPECT_EQ(vocab.kind(), vocabulary_kind::byte_level_bpe);
  EXPECT_EQ(vocab.size(), tiny.tokens.size());
  EXPECT_EQ(vocab.find("hello"), tiny.id("hello"));
  EXPECT_EQ(vocab.find("absent"), std::nullopt);
  EXPECT_EQ(vocab.text(tiny.id("hello")), "hello");
  EXPECT_EQ(vocab.type(tiny.id("<think>")), token_type::user_defined);
  EXPECT_EQ(vocab.eos(), tiny.id("<|end|>"));
  EXPECT_EQ(vocab.bos(), std::nullopt);
  EXPECT_TRUE(vocab.adds_bos());
  EXPECT_FALSE(vocab.adds_eos());
  EXPECT_EQ(vocab.chat_template(), "{{ x }}");
  EXPECT_EQ(vocab.pretokenizer_name(), "qwen2");
  EXPECT_FALSE(vocab.contains(-1));
  EXPECT_FALSE(vocab.contains(static_cast<token>(tiny.tokens.size())));
}

TEST(vocabulary, knows_the_tokens_that_answers_never_have) {
  const auto tiny = test::tiny_bpe();
  gguf::gguf_writer writer = tiny.writer();
  EXPECT_TRUE(loaded(writer).suppressed().empty());
  writer.put_i32s("tokenizer.ggml.suppress_tokens", std::vector<std::int32_t>{3, -1, 1'000'000, 2, 3});
  EXPECT_EQ(loaded(writer).suppressed(), (std::vector<token>{2, 3}));
  gguf::gguf_writer wrong = tiny.writer();
  wrong.put_strings("tokenizer.ggml.suppress_tokens", std::vector<std::string>{"a"});
  EXPECT_THAT(refusal(wrong), HasSubstr("expected token ids"));
}

TEST(vocabulary, knows_the_ends_of_generation) {
  auto tiny = test::tiny_bpe();
  for (const char* text : {"<|endoftext|>", "<|im_end|>", "<|fim_pad|>"}) tiny.add(text, 3);
  tiny.add("<|eot_id|>", 1);  // an ordinary token that only looks like one
  tiny.add("</s>", 4);
  const vocabulary vocab = loaded(tiny.writer());
  EXPECT_EQ(vocab.eot(), tiny.id("<|im_end|>"));
  for (const char* text : {"<|endoftext|>", "<|im_end|>", "<|fim_pad|>", "<|end|>"}) {
    EXPECT_TRUE(vocab.is_end_of_generation(tiny.id(text))) << text;
  }
  for (const char* text : {"<|eot_id|>", "</s>", "<|im_start|>", "hello"}) {
    EXPECT_FALSE(vocab.is_end_of_generation(tiny.id(text))) << text;
  }
  EXPECT_FALSE(vocab.is_end_of_generation(-1));
  EXPECT_FALSE(vocab.is_end_of_generation(1 << 20));
}

TEST(vocabulary, in_harmony_a_message_ends_and_the_answer_goes_on) {
  auto tiny = test::tiny_bpe();
  tiny.add("<|return|>", 3);
  EXPECT_TRUE(loaded(tiny.writer()).is_end_of_generation(tiny.id("<|end|>"))) << "one of the two is not enough";
  EXPECT_FALSE(loaded(tiny.writer()).is_end_of_generation(tiny.id("<|return|>")));
  tiny.add("<|call|>", 3);
  gguf::gguf_writer writer = tiny.writer();
  writer.put_u32("tokenizer.ggml.eos_token_id", static_cast<std::uint32_t>(tiny.id("<|return|>")));
  const vocabulary vocab = loaded(writer);
  EXPECT_FALSE(vocab.is_end_of_generation(tiny.id("<|end|>")));
  EXPECT_TRUE(vocab.is_end_of_generation(tiny.id("<|return|>")));
  EXPECT_TRUE(vocab.is_end_of_generation(tiny.id("<|call|>")));
  EXPECT_EQ(vocab.eot(), tiny.id("<|return|>"));
}

TEST(vocabulary, finds_fim_tokens_by_key_and_by_text) {
  auto tiny = test::tiny_bpe();
  for (const char* text : {"<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<file_sep>", "<other>"}) tiny.add(text, 3);
  gguf::gguf_writer writer = tiny.writer();
  EXPECT_TRUE(loaded(writer).fim().complete());
  writer.put_u32("tokenizer.ggml.fim_pre_token_id", static_cast<std::uint32_t>(tiny.id("<other>")));
  const vocabulary vocab = loaded(writer);
  EXPECT_EQ(vocab.fim().prefix, tiny.id("<other>"));
  EXPECT_EQ(vocab.fim().suffix, tiny.id("<fim_suffix>"));
  EXPECT_EQ(vocab.fim().file_separator, tiny.id("<file_sep>"));
  EXPECT_EQ(vocab.fim().pad, std::nullopt);
  EXPECT_FALSE(loaded(test::tiny_bpe().writer()).fim().complete());
}

TEST(vocabulary, defaults_to_what_the_kind_is_known_for) {
  const vocabulary spm = loaded(test::tiny_spm().writer());
  EXPECT_TRUE(spm.adds_bos());
  EXPECT_TRUE(spm.adds_space_prefix());
  EXPECT_EQ(spm.unknown(), 0);
  EXPECT_EQ(spm.bos(), 1);
  EXPECT_EQ(spm.eos(), 2);
  const vocabulary qwen = loaded(test::tiny_bpe("qwen2").writer());
  EXPECT_FALSE(qwen.adds_bos());
  EXPECT_FALSE(qwen.adds_space_prefix());
  EXPECT_EQ(qwen.message_start(), test::tiny_bpe("qwen2").id("<|im_start|>"));
  EXPECT_EQ(spm.message_start(), std::nullopt);
  EXPECT_TRUE(loaded(test::tiny_bpe("llama-bpe").writer()).adds_bos());
  EXPECT_EQ(loaded(test::tiny_bpe("").writer()).pretokenizer_name(), "default");
}

TEST(vocabulary, digests_what_the_ids_mean) {
  const auto tiny = test::tiny_bpe();
  const std::uint64_t digest = loaded(tiny.writer()).digest();
  auto padded = tiny;
  padded.add("[PAD1]", 5);
  EXPECT_EQ(loaded(padded.writer()).digest(), digest);
  auto longer = tiny;
  longer.add("[PAD1]", 1);
  EXPECT_NE(loaded(longer.writer()).digest(), digest);
  auto swapped = tiny;
  std::swap(swapped.tokens[3], swapped.tokens[4]);
  EXPECT_NE(loaded(swapped.writer()).digest(), digest);
}

TEST(vocabulary, refuses_arrays_that_do_not_fit_together) {
  auto short_types = test::tiny_bpe();
  short_types.types.pop_back();
  EXPECT_THAT(refusal(short_types.writer()), HasSubstr("token_type': expected one number for each"));
  auto short_scores = test::tiny_spm();
  short_scores.scores.pop_back();
  EXPECT_THAT(refusal(short_scores.writer()), HasSubstr("scores': expected one number for each"));
  for (const char* merge : {"he", " ll", "h ", ""}) {
    auto bad_merge = test::tiny_spm();
    bad_merge.model = "gemma4";
    bad_merge.merges = {"l l", merge};
    EXPECT_THAT(refusal(bad_merge.writer()), HasSubstr("merges': merge 1: expected two strings and a space between"));
  }
  auto nan = test::tiny_spm();
  nan.scores[7] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(refusal(nan.writer()), HasSubstr("the score of token 7 is not a number"));
  for (const int type : {7, -1}) {
    auto bad_type = test::tiny_bpe();
    bad_type.types[5] = type;
    EXPECT_THAT(refusal(bad_type.writer()), HasSubstr("token 5 has the unknown type"));
  }
}

TEST(vocabulary, refuses_ids_outside_of_the_vocabulary) {
  gguf::gguf_writer writer = test::tiny_bpe().writer();
  writer.put_u32("tokenizer.ggml.eos_token_id", 5000);
  EXPECT_THAT(refusal(writer), HasSubstr("eos_token_id': token 5000 is outside of the vocabulary of"));
}

TEST(vocabulary, refuses_missing_and_foreign_models) {
  gguf::gguf_writer empty;
  EXPECT_THAT(refusal(empty), HasSubstr("'tokenizer.ggml.model' is missing"));
  auto foreign = test::tiny_bpe();
  foreign.model = "bert";
  EXPECT_THAT(refusal(foreign.writer(), errc::unsupported_format), HasSubstr("found 'bert'"));
  gguf::gguf_writer no_tokens;
  no_tokens.put_string("tokenizer.ggml.model", "gpt2");
  EXPECT_THAT(refusal(no_tokens), HasSubstr("'tokenizer.ggml.tokens' is missing"));
  no_tokens.put_strings("tokenizer.ggml.tokens", {});
  EXPECT_THAT(refusal(no_tokens), HasSubstr("is empty"));
}

}  // namespace
}  // namespace redline::text
