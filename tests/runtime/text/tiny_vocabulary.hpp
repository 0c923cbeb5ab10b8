#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/gguf/gguf_file.hpp"
#include "runtime/gguf/gguf_writer.hpp"

namespace redline::test {

/// Parts of a vocabulary-only file, which tests change one at a time.
struct tiny_vocabulary {
  std::string model;
  std::string pre;
  std::vector<std::string> tokens;
  std::vector<std::int32_t> types;
  std::vector<float> scores;
  std::vector<std::string> merges;
  std::string name = "tiny";

  [[nodiscard]] int id(const std::string& text) const;
  void add(std::string text, int type, float score = 0);
  [[nodiscard]] gguf::gguf_writer writer() const;
  [[nodiscard]] std::shared_ptr<const gguf::gguf_file> file() const;
};

/// GPT-2's character for a byte.
std::string byte_character(int byte);

/// 256 byte tokens; he, ll, hell, hello, Ġw, or, Ġwor, ld and Ġworld from merges; control tokens <|end|> (also eos) and
/// <|im_start|>; user-defined <think> and two spaces.
tiny_vocabulary tiny_bpe(std::string pre = "qwen2");

/// <unk>, <s>, </s>, 256 byte tokens, letters and a few pieces with scores, user-defined <tag>. BOS is added.
tiny_vocabulary tiny_spm();

}  // namespace redline::test
