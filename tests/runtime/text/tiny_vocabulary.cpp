#include "tests/runtime/text/tiny_vocabulary.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace redline::test {

int tiny_vocabulary::id(const std::string& text) const {
  const auto it = std::find(tokens.begin(), tokens.end(), text);
  if (it == tokens.end()) throw std::runtime_error("no token " + text);
  return static_cast<int>(it - tokens.begin());
}

void tiny_vocabulary::add(std::string text, int type, float score) {
  tokens.push_back(std::move(text));
  types.push_back(type);
  scores.push_back(score);
}

gguf::gguf_writer tiny_vocabulary::writer() const {
  gguf::gguf_writer out;
  out.put_string("general.name", name);
  out.put_string("tokenizer.ggml.model", model);
  if (!pre.empty()) out.put_string("tokenizer.ggml.pre", pre);
  out.put_strings("tokenizer.ggml.tokens", tokens);
  out.put_i32s("tokenizer.ggml.token_type", types);
  if (model == "llama")
    out.put_f32s("tokenizer.ggml.scores", scores);
  else
    out.put_strings("tokenizer.ggml.merges", merges);
  return out;
}

std::shared_ptr<const gguf::gguf_file> tiny_vocabulary::file() const {
  auto opened = gguf::gguf_file::from_bytes(writer().bytes(), "tiny.gguf");
  if (!opened) throw std::runtime_error(opened.error().describe());
  return *opened;
}

std::string byte_character(int byte) {
  const auto printable = [](int b) { return (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174; };
  int code_point = byte;
  if (!printable(byte)) {
    code_point = 256;
    for (int b = 0; b < byte; ++b) code_point += printable(b) ? 0 : 1;
  }
  if (code_point < 128) return {static_cast<char>(code_point)};
  return {static_cast<char>(0xC0 + code_point / 64), static_cast<char>(0x80 + code_point % 64)};
}

tiny_vocabulary tiny_bpe(std::string pre) {
  tiny_vocabulary out{"gpt2", std::move(pre), {}, {}, {}, {}};
  for (int byte = 0; byte < 256; ++byte) out.add(byte_character(byte), 1);
  out.merges = {"h e", "l l", "he ll", "hell o", "Ġ w", "o r", "Ġw or", "l d", "Ġwor ld"};
  for (std::string merge : out.merges) {
    merge.erase(merge.find(' '), 1);
    out.add(merge, 1);
  }
  out.add("<|end|>", 3);
  out.add("<|im_start|>", 3);
  out.add("<think>", 4);
  out.add("  ", 4);
  return out;
}

tiny_vocabulary tiny_spm() {
  tiny_vocabulary out{"llama", "default", {}, {}, {}, {}};
  out.add("<unk>", 2);
  out.add("<s>", 3);
  out.add("</s>", 3);
  for (int byte = 0; byte < 256; ++byte) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    out.add(
        {'<', '0', 'x', digits[static_cast<std::size_t>(byte / 16)], digits[static_cast<std::size_t>(byte % 16)], '>'},
        6);
  }
  for (const char* text : {"▁", "h", "e", "l", "o", "w", "r", "d", "<", "/", "s", ">"}) out.add(text, 1, -100);
  out.add("ll", 1, -1);
  out.add("he", 1, -2);
  out.add("lo", 1, -3);
  out.add("hell", 1, -4);
  out.add("hello", 1, -5);
  out.add("▁hello", 1, -6);
  out.add("▁w", 1, -7);
  out.add("</", 1, -9);
  out.add("</s", 1, -8);
  out.add("<tag>", 4, -1);
  return out;
}

}  // namespace redline::test
