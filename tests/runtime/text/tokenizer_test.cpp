#include "runtime/text/tokenizer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <future>
#include <map>
#include <random>

#include "runtime/base/utf8.hpp"
#include "runtime/text/pretokenizer.hpp"
#include "tests/runtime/text/tiny_vocabulary.hpp"

namespace redline::text {
namespace {

using testing::HasSubstr;
using ids = std::vector<token>;

std::shared_ptr<const tokenizer> load(const test::tiny_vocabulary& tiny) {
  auto out = tokenizer::from_file(*tiny.file());
  EXPECT_TRUE(out) << (out ? "" : out.error().describe());
  return out ? *out : nullptr;
}

ids ids_of(const test::tiny_vocabulary& tiny, std::initializer_list<const char*> texts) {
  ids out;
  for (const char* text : texts) out.push_back(tiny.id(text));
  return out;
}

TEST(bpe_tokenizer, merges_by_rank) {
  const auto tiny = test::tiny_bpe();
  const auto subject = load(tiny);
  EXPECT_EQ(subject->encode(""), ids{});
  EXPECT_EQ(subject->encode("hello world"), ids_of(tiny, {"hello", "Ġworld"}));
  EXPECT_EQ(subject->encode("hell"), ids_of(tiny, {"hell"}));
  EXPECT_EQ(subject->encode("helo"), ids_of(tiny, {"he", "l", "o"}));
  EXPECT_EQ(subject->encode("lll"), ids_of(tiny, {"ll", "l"}));
  EXPECT_EQ(subject->encode("\n"), ids_of(tiny, {"Ċ"}));
  EXPECT_TRUE(subject->keeps_every_byte());
}

TEST(bpe_tokenizer, gives_repeated_pieces_the_same_tokens) {
  const auto tiny = test::tiny_bpe();
  const auto subject = load(tiny);
  EXPECT_EQ(subject->encode("hello world world world"), ids_of(tiny, {"hello", "Ġworld", "Ġworld", "Ġworld"}));
}

TEST(bpe_tokenizer, treats_special_texts_as_the_options_say) {
  const auto tiny = test::tiny_bpe();
  const auto subject = load(tiny);
  const ids parsed = subject->encode("<|im_start|>hello<|end|>", {.parse_special = true});
  EXPECT_EQ(parsed, ids_of(tiny, {"<|im_start|>", "hello", "<|end|>"}));
  const ids plain = subject->encode("<|im_start|>hello<|end|>");
  for (const token id : plain) EXPECT_NE(subject->vocab().type(id), token_type::control);
  EXPECT_EQ(subject->decode(plain).value(), "<|im_start|>hello<|end|>");
  EXPECT_EQ(subject->encode("a<think>"), ids_of(tiny, {"a", "<think>"}));
}

TEST(bpe_tokenizer, does_not_let_merges_spell_a_control_token) {
  auto tiny = test::tiny_bpe("gpt-2");
  tiny.add("no", 3);
  tiny.merges.push_back("n o");
  const auto subject = load(tiny);
  EXPECT_EQ(subject->encode("no"), ids_of(tiny, {"n", "o"}));
}

TEST(bpe_tokenizer, adds_bos_and_eos_where_the_file_asks) {
  const auto tiny = test::tiny_bpe();
  gguf::gguf_writer writer = tiny.writer();
  writer.put_u32("tokenizer.ggml.bos_token_id", static_cast<std::uint32_t>(tiny.id("<|im_start|>")));
  writer.put_u32("tokenizer.ggml.eos_token_id", static_cast<std::uint32_t>(tiny.id("<|end|>")));
  writer.put_bool("tokenizer.ggml.add_bos_token", true);
  writer.put_bool("tokenizer.ggml.add_eos_token", true);
  const auto file = gguf::gguf_file::from_bytes(writer.bytes(), "tiny.gguf");
  const auto subject = tokenizer::from_file(**file).value();
  EXPECT_EQ(subject->encode("hello", {.add_bos_eos = true}), ids_of(tiny, {"<|im_start|>", "hello", "<|end|>"}));
  EXPECT_EQ(subject->encode("", {.add_bos_eos = true}), ids_of(tiny, {"<|im_start|>", "<|end|>"}));
  EXPECT_EQ(subject->encode("hello"), ids_of(tiny, {"hello"}));
}

TEST(bpe_tokenizer, takes_whole_pieces_first_only_for_llama3) {
  for (const bool llama3 : {false, true}) {
    auto tiny = test::tiny_bpe(llama3 ? "llama-bpe" : "qwen2");
    tiny.add("whole", 1);  // no merge leads to this token
    const auto subject = load(tiny);
    EXPECT_EQ(subject->encode("whole").size(), llama3 ? 1U : 5U);
  }
}

TEST(bpe_tokenizer, goes_through_merges_whose_outcome_is_no_token) {
  auto tiny = test::tiny_bpe();
  tiny.add("xyz", 1);
  tiny.merges.push_back("x y");  // "xy" is not in the vocabulary
  tiny.merges.push_back("xy z");
  const auto subject = load(tiny);
  EXPECT_EQ(subject->encode("xyz"), ids_of(tiny, {"xyz"}));
  EXPECT_EQ(subject->encode("xy"), ids_of(tiny, {"x", "y"}));
}

TEST(bpe_tokenizer, renders_pieces) {
  const auto tiny = test::tiny_bpe();
  const auto subject = load(tiny);
  EXPECT_EQ(subject->piece(tiny.id("Ġworld")), " world");
  EXPECT_EQ(subject->piece(tiny.id("<|end|>")), "");
  EXPECT_EQ(subject->piece(tiny.id("<|end|>"), true), "<|end|>");
  EXPECT_EQ(subject->piece(tiny.id("<think>")), "<think>");
  EXPECT_EQ(subject->piece(-1), "");
  EXPECT_EQ(subject->piece(1 << 20), "");
  const auto outside = subject->decode(ids{0, 99999});
  ASSERT_FALSE(outside);
  EXPECT_EQ(outside.error().code, errc::invalid_argument);
  EXPECT_THAT(outside.error().context, HasSubstr("token 99999"));
}

TEST(bpe_tokenizer, writes_a_replacement_for_bytes_that_utf8_never_uses_when_the_vocabulary_lacks_them) {
  auto tiny = test::tiny_bpe();
  const auto at = static_cast<std::size_t>(tiny.id(test::byte_character(0xFF)));
  tiny.types[at] = 4;  // as in deepseek-coder: the token is the text "ÿ", not the byte
  const auto subject = load(tiny);
  EXPECT_FALSE(subject->keeps_every_byte());
  EXPECT_EQ(subject
                ->decode(subject->encode("a\xFF"
                                         "b"))
                .value(),
            "a\uFFFD"
            "b");
  EXPECT_EQ(subject->decode(subject->encode("ÿ\xFE")).value(), "ÿ\xFE");
}

TEST(bpe_tokenizer, needs_a_token_for_every_byte_of_utf8) {
  auto tiny = test::tiny_bpe();
  tiny.types[static_cast<std::size_t>(tiny.id("Q"))] = 5;
  const auto refused = tokenizer::from_file(*tiny.file());
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().context, HasSubstr("no token for byte 81"));
  gguf::gguf_writer with_unknown = tiny.writer();
  with_unknown.put_u32("tokenizer.ggml.unknown_token_id", static_cast<std::uint32_t>(tiny.id("<|end|>")));
  const auto file = gguf::gguf_file::from_bytes(with_unknown.bytes(), "tiny.gguf");
  EXPECT_EQ(tokenizer::from_file(**file).value()->encode("Q"), ids_of(tiny, {"<|end|>"}));
}

TEST(bpe_tokenizer, refuses_broken_merges_and_unknown_pretokenizers) {
  for (const char* merge : {"he", " he", "he ", "h e l", ""}) {
    auto tiny = test::tiny_bpe();
    tiny.merges[2] = merge;
    const auto refused = tokenizer::from_file(*tiny.file());
    ASSERT_FALSE(refused) << merge;
    EXPECT_THAT(refused.error().context, HasSubstr("tiny.gguf: metadata 'tokenizer.ggml.merges': merge 2"));
  }
  const auto refused = tokenizer::from_file(*test::tiny_bpe("mystery").file());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::unsupported_format);
  EXPECT_THAT(refused.error().context, HasSubstr("tiny.gguf: tokenizer.ggml.pre: "));
  EXPECT_THAT(refused.error().context, HasSubstr("found 'mystery'"));
}

/// Merges of random short texts over four letters, so that many ranks compete.
test::tiny_vocabulary random_bpe(std::mt19937_64& random, std::size_t merge_count) {
  auto tiny = test::tiny_bpe("gpt-2");
  tiny.merges.clear();
  std::vector<std::string> texts = {"a", "b", "c", "d"};
  while (tiny.merges.size() < merge_count) {
    const std::string left = texts[random() % texts.size()];
    const std::string right = texts[random() % texts.size()];
    if (std::find(texts.begin(), texts.end(), left + right) == texts.end()) texts.push_back(left + right);
    tiny.merges.push_back(left + " " + right);
    if (random() % 8 != 0 && std::find(tiny.tokens.begin(), tiny.tokens.end(), left + right) == tiny.tokens.end()) {
      tiny.add(left + right, 1);
    }
  }
  return tiny;
}

/// Byte-pair encoding by definition: repeatedly merges the lowest rank, leftmost first.
ids naive_bpe(const test::tiny_vocabulary& tiny, const std::string& text) {
  std::vector<std::string> parts;
  for (const char byte : text) parts.emplace_back(1, byte);
  std::map<std::string, std::size_t> ranks;
  for (std::size_t i = 0; i < tiny.merges.size(); ++i) ranks.emplace(tiny.merges[i], i);
  for (;;) {
    std::size_t best = tiny.merges.size();
    std::size_t at = 0;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      const auto it = ranks.find(parts[i] + " " + parts[i + 1]);
      if (it != ranks.end() && it->second < best) best = it->second, at = i;
    }
    if (best == tiny.merges.size()) break;
    parts[at] += parts[at + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
  ids out;
  for (const std::string& part : parts) {
    if (std::find(tiny.tokens.begin(), tiny.tokens.end(), part) != tiny.tokens.end())
      out.push_back(tiny.id(part));
    else
      for (const char byte : part) out.push_back(tiny.id(std::string(1, byte)));
  }
  return out;
}

TEST(bpe_tokenizer, agrees_with_the_definition_on_random_merges) {
  std::mt19937_64 random(31);
  for (int round = 0; round < 40; ++round) {
    const auto tiny = random_bpe(random, 5 + random() % 40);
    const auto subject = load(tiny);
    for (int i = 0; i < 50; ++i) {
      std::string text;
      for (auto n = 1 + random() % 40; n > 0; --n) text.push_back("abcd"[random() % 4]);
      ASSERT_EQ(subject->encode(text), naive_bpe(tiny, text)) << text;
    }
  }
}

TEST(bpe_tokenizer, brings_any_bytes_back) {
  std::mt19937_64 random(17);
  for (const char* pre : {"qwen2", "gpt-2", "starcoder", "deepseek-coder", "llama-bpe", "default"}) {
    const auto subject = load(test::tiny_bpe(pre));
    for (int round = 0; round < 500; ++round) {
      std::string text;
      for (auto n = random() % 60; n > 0; --n) {
        if (random() % 3 == 0)
          text += "hello world <|end|> <think>"[random() % 27];
        else
          text.push_back(static_cast<char>(random()));
      }
      ASSERT_EQ(subject->decode(subject->encode(text)).value(), text) << pre;
      ASSERT_EQ(subject->decode(subject->encode(text, {.parse_special = true}), {.render_special = true}).value(),
                text);
    }
  }
}

TEST(bpe_tokenizer, takes_one_very_long_word) {
  const auto subject = load(test::tiny_bpe());
  const std::string text(1 << 20, 'l');
  const ids encoded = subject->encode(text);
  EXPECT_EQ(encoded.size(), text.size() / 2);
}

TEST(spm_tokenizer, merges_by_score_and_marks_blanks) {
  const auto tiny = test::tiny_spm();
  const auto subject = load(tiny);
  EXPECT_EQ(subject->encode(""), ids{});
  EXPECT_EQ(subject->encode("hello"), ids_of(tiny, {"▁hello"}));
  EXPECT_EQ(subject->encode(" hello"), ids_of(tiny, {"▁", "▁hello"}));
  EXPECT_EQ(subject->encode("hello wo"), ids_of(tiny, {"▁hello", "▁w", "o"}));
  EXPECT_EQ(subject->encode("hel"), ids_of(tiny, {"▁", "he", "l"}));
  EXPECT_EQ(subject->encode("hello", {.add_bos_eos = true}), ids_of(tiny, {"<s>", "▁hello"}));
}

/// Gemma 4's files have merges instead of scores.
TEST(spm_tokenizer, takes_the_order_of_merges_for_scores) {
  auto tiny = test::tiny_spm();
  tiny.model = "gemma4";
  tiny.merges = {"l l", "h e", "l o", "he ll", "hell o", "▁ hello", "▁ w", "</ s", "< /"};
  tiny.add("wo", 1);  // no merge makes it
  const auto subject = load(tiny);
  EXPECT_EQ(subject->encode("hello wo"), ids_of(tiny, {"hello", "▁w", "o"})) << "no space is put before a text";
  EXPECT_EQ(subject->encode(" hello"), ids_of(tiny, {"▁hello"}));
  EXPECT_EQ(subject->encode("wo"), ids_of(tiny, {"w", "o"}));
  EXPECT_EQ(subject->encode("é\n"), ids_of(tiny, {"<0xC3>", "<0xA9>", "<0x0A>"}));
  std::swap(tiny.merges[0], tiny.merges[1]);
  std::swap(tiny.merges[1], tiny.merges[2]);  // "lo" comes before "ll"
  EXPECT_EQ(load(tiny)->encode("hello"), ids_of(tiny, {"he", "l", "lo"}));
  EXPECT_EQ(load(tiny)->decode(load(tiny)->encode(" hello wo")).value(), " hello wo");
}

TEST(spm_tokenizer, spells_unknown_characters_in_bytes) {
  const auto tiny = test::tiny_spm();
  const auto subject = load(tiny);
  EXPECT_EQ(subject->encode("hé"), ids_of(tiny, {"▁", "h", "<0xC3>", "<0xA9>"}));
  EXPECT_EQ(subject->encode("\xFF\n"), ids_of(tiny, {"▁", "<0xFF>", "<0x0A>"}));
  EXPECT_EQ(subject->piece(tiny.id("<0xC3>")), "\xC3");
}

TEST(spm_tokenizer, never_spells_control_or_byte_tokens_from_text) {
  const auto tiny = test::tiny_spm();
  const auto subject = load(tiny);
  // "</s" is a piece, so merging alone could reach "</s>".
  EXPECT_EQ(subject->encode("</s>"), ids_of(tiny, {"▁", "</s", ">"}));
  EXPECT_EQ(subject->encode("</s>", {.parse_special = true}), ids_of(tiny, {"</s>"}));
  for (const token id : subject->encode("<0x0A>")) EXPECT_NE(id, tiny.id("<0x0A>"));
}

TEST(spm_tokenizer, puts_a_blank_after_every_token_matched_as_a_whole) {
  const auto tiny = test::tiny_spm();
  const auto subject = load(tiny);
  EXPECT_EQ(subject->encode("hello<tag>hello"), ids_of(tiny, {"▁hello", "<tag>", "▁hello"}));
  gguf::gguf_writer writer = tiny.writer();
  writer.put_bool("tokenizer.ggml.add_space_prefix", false);
  const auto file = gguf::gguf_file::from_bytes(writer.bytes(), "tiny.gguf");
  const auto without = tokenizer::from_file(**file).value();
  EXPECT_EQ(without->encode("hello<tag>hello"), ids_of(tiny, {"hello", "<tag>", "hello"}));
}

TEST(spm_tokenizer, takes_the_added_blank_off_a_whole_text_only) {
  const auto tiny = test::tiny_spm();
  const auto subject = load(tiny);
  const ids encoded = subject->encode("hello wo", {.add_bos_eos = true});
  EXPECT_EQ(subject->decode(encoded).value(), " hello wo");
  EXPECT_EQ(subject->decode(encoded, {.strip_space_prefix = true}).value(), "hello wo");
}

/// SentencePiece merging by definition, with bytes for text that is not a token.
ids naive_spm(const test::tiny_vocabulary& tiny, const std::string& text) {
  std::vector<std::string> parts;
  const std::string escaped = "▁" + text;
  for (std::size_t at = 0; at < escaped.size();) {
    const std::size_t n = utf8::first_unit(escaped.substr(at)).size_bytes;
    parts.push_back(escaped.substr(at, n));
    at += n;
  }
  const auto mergeable = [&](const std::string& part) {
    const auto it = std::find(tiny.tokens.begin(), tiny.tokens.end(), part);
    if (it == tiny.tokens.end()) return -1;
    const auto at = it - tiny.tokens.begin();
    return tiny.types[static_cast<std::size_t>(at)] == 1 ? static_cast<int>(at) : -1;
  };
  for (;;) {
    int best = -1;
    std::size_t at = 0;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      const int id = mergeable(parts[i] + parts[i + 1]);
      if (id < 0) continue;
      if (best >= 0 && tiny.scores[static_cast<std::size_t>(id)] <= tiny.scores[static_cast<std::size_t>(best)])
        continue;
      best = id;
      at = i;
    }
    if (best < 0) break;
    parts[at] += parts[at + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
  ids out;
  for (const std::string& part : parts) {
    if (mergeable(part) >= 0)
      out.push_back(mergeable(part));
    else
      for (const unsigned char byte : part) out.push_back(3 + byte);
  }
  return out;
}

TEST(spm_tokenizer, agrees_with_the_definition_on_random_pieces) {
  std::mt19937_64 random(41);
  for (int round = 0; round < 40; ++round) {
    auto tiny = test::tiny_spm();
    std::vector<std::string> texts = {"▁", "h", "e", "l", "o", "é"};
    for (int i = 0; i < 30; ++i) {
      const std::string joined = texts[random() % texts.size()] + texts[random() % texts.size()];
      if (std::find(tiny.tokens.begin(), tiny.tokens.end(), joined) != tiny.tokens.end()) continue;
      texts.push_back(joined);
      tiny.add(joined, 1, -static_cast<float>(random() % 12));
    }
    const auto subject = load(tiny);
    for (int i = 0; i < 50; ++i) {
      std::string text;
      std::string spaced;
      for (auto n = 1 + random() % 30; n > 0; --n) {
        const std::string unit = std::vector<std::string>{"▁", "h", "e", "l", "o", "é", "x"}[random() % 7];
        text += unit;
        spaced += unit == "▁" ? " " : unit;
      }
      ASSERT_EQ(subject->encode(spaced), naive_spm(tiny, text)) << spaced;
      ASSERT_EQ(subject->decode(subject->encode(spaced), {.strip_space_prefix = true}).value(), spaced);
    }
  }
}

TEST(spm_tokenizer, needs_byte_tokens_or_an_unknown_token) {
  auto tiny = test::tiny_spm();
  tiny.types[3 + 0x41] = 1;
  EXPECT_EQ(load(tiny)->encode("A"), ids_of(tiny, {"▁", "<unk>"}));
  tiny.types[0] = 1;
  const auto refused = tokenizer::from_file(*tiny.file());
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().context, HasSubstr("no token <0x41>"));
}

TEST(tokenizer, encodes_from_several_threads_at_once) {
  const auto subject = load(test::tiny_bpe());
  const std::string text = "hello world <|end|> \u00e9 12\n";
  const ids wanted = subject->encode(text);
  std::vector<std::future<bool>> results;
  for (int i = 0; i < 4; ++i) {
    results.push_back(std::async(std::launch::async, [&] {
      for (int round = 0; round < 200; ++round) {
        if (subject->encode(text) != wanted) return false;
      }
      return true;
    }));
  }
  for (auto& one : results) EXPECT_TRUE(one.get());
}

TEST(tokenizer, survives_mutated_vocabularies) {
  std::mt19937_64 random(77);
  int loaded = 0;
  for (const auto& tiny : {test::tiny_bpe(), test::tiny_bpe("llama-bpe"), test::tiny_spm()}) {
    gguf::gguf_writer writer = tiny.writer();
    writer.put_u32("tokenizer.ggml.eos_token_id", 1);
    writer.put_bool("tokenizer.ggml.add_eos_token", true);
    const std::vector<std::byte> whole = writer.bytes();
    for (int round = 0; round < 2000; ++round) {
      std::vector<std::byte> bytes = whole;
      for (auto n = 1 + random() % 6; n > 0; --n) bytes[random() % bytes.size()] = static_cast<std::byte>(random());
      const auto file = gguf::gguf_file::from_bytes(std::move(bytes), "mutated");
      if (!file) continue;
      const auto subject = tokenizer::from_file(**file);
      if (!subject) continue;
      ++loaded;
      const ids encoded =
          (*subject)->encode("hello world</s>\xFF<think> \u00e9", {.parse_special = true, .add_bos_eos = true});
      for (const token id : encoded) ASSERT_TRUE((*subject)->vocab().contains(id));
      ASSERT_TRUE((*subject)->decode(encoded, {.render_special = true, .strip_space_prefix = true}));
    }
  }
  EXPECT_GT(loaded, 100);
}

}  // namespace
}  // namespace redline::text
