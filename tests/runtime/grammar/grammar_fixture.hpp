#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <random>
#include <string>
#include <vector>

#include "runtime/grammar/grammar_matcher.hpp"
#include "tests/support/test_data.hpp"
#include "tests/support/tiny_model.hpp"

namespace redline::test {

inline std::shared_ptr<const text::tokenizer> tiny_tokenizer() {
  static const auto file = make_tiny_model().file();
  static const auto tokenizer = *text::tokenizer::from_file(*file);
  return tokenizer;
}

/// The tiny tokenizer with tokens for "</", "<copy", "<gen" and "=\"".
inline std::shared_ptr<const text::tokenizer> program_tokenizer() {
  static const auto tokenizer = [] {
    auto m = make_tiny_model();
    add_program_tokens(m);
    return *text::tokenizer::from_file(*m.file());
  }();
  return tokenizer;
}

/// The vocabularies of the test data that are present.
inline std::vector<std::pair<std::string, std::shared_ptr<const text::tokenizer>>> real_tokenizers() {
  std::vector<std::pair<std::string, std::shared_ptr<const text::tokenizer>>> all;
  for (const char* name : {"qwen2-rebuilt", "llama-spm", "starcoder"}) {
    const auto path = data_path("vocab/ggml-vocab-" + std::string(name) + ".gguf");
    if (!path) continue;
    const auto file = gguf::gguf_file::open(*path);
    auto tokenizer =
        file ? text::tokenizer::from_file(**file) : result<std::shared_ptr<const text::tokenizer>>(file.error());
    if (!tokenizer) {
      ADD_FAILURE() << name << ": " << tokenizer.error().describe();
      continue;
    }
    all.emplace_back(name, *tokenizer);
  }
  return all;
}

/// A random token of the mask; -1 if there is none.
inline token random_token(std::span<const std::uint64_t> mask, std::mt19937& random) {
  std::size_t count = 0;
  for (const auto w : mask) count += static_cast<std::size_t>(std::popcount(w));
  if (count == 0) return -1;
  std::size_t skip = random() % count;
  for (std::size_t i = 0; i < mask.size(); ++i) {
    for (auto w = mask[i]; w != 0; w &= w - 1) {
      if (skip-- == 0) return static_cast<token>(i * 64 + static_cast<std::size_t>(std::countr_zero(w)));
    }
  }
  return -1;
}

}  // namespace redline::test
