#include "runtime/gguf/tokenizer_keys.hpp"

#include <algorithm>
#include <string_view>
#include <variant>

namespace redline::gguf {
namespace {

constexpr auto normal_type = static_cast<std::int32_t>(token_kind::normal);
constexpr auto control_type = static_cast<std::int32_t>(token_kind::control);
constexpr auto unused_type = static_cast<std::int32_t>(token_kind::unused);

failure malformed(const gguf_file& file, std::string_view key, const std::string& why) {
  return {errc::file_malformed, file.path() + ": metadata '" + std::string(key) + "': " + why};
}

bool is_per_token(std::string_view key) {
  return key == "tokenizer.ggml.tokens" || key == "tokenizer.ggml.token_type" || key == "tokenizer.ggml.scores";
}

/// token_type and scores, one number per token.
result<void> copy_numbers(const gguf_file& from, std::string_view key, const array& have, std::size_t tokens,
                          std::uint32_t size, gguf_writer& to) {
  if (have.element_type == value_type::string || have.size() != tokens) {
    return malformed(from, key,
                     "expected one number for each of the " + std::to_string(tokens) + " tokens, found " +
                         std::to_string(have.size()) + " entries");
  }
  const bool types = key == "tokenizer.ggml.token_type";
  array padded = have;
  padded.numbers.resize(size, types ? unused_type : -10000);
  if (types) padded.element_type = value_type::i32;
  to.put_value(key, {value_type::array, std::move(padded)});
  return {};
}

}  // namespace

std::string byte_character(unsigned char byte) {
  const auto printable = [](unsigned b) { return (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174; };
  unsigned code = byte;
  if (!printable(byte)) {
    code = 256;
    for (unsigned b = 0; b < byte; ++b) code += printable(b) ? 0 : 1;
  }
  if (code < 0x80) return {static_cast<char>(code)};
  return {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 0x3f))};
}

std::string unused_token(std::size_t id) { return "[PAD" + std::to_string(id) + "]"; }

result<void> copy_tokenizer(const gguf_file& from, std::uint32_t size, gguf_writer& to) {
  REDLINE_TRY_ASSIGN(const array* tokens, from.get_array("tokenizer.ggml.tokens"));
  if (tokens->element_type != value_type::string) return malformed(from, "tokenizer.ggml.tokens", "expected strings");
  const std::size_t count = tokens->size();
  if (count > size) {
    return malformed(from, "tokenizer.ggml.tokens",
                     "expected at most " + std::to_string(size) +
                         " tokens, the size of the model's vocabulary, found " + std::to_string(count));
  }
  for (const auto& [key, value] : from.metadata()) {
    if (!key.starts_with("tokenizer.")) continue;
    if (!is_per_token(key)) {
      to.put_value(key, value);
      continue;
    }
    REDLINE_TRY_ASSIGN(const array* have, from.get_array(key));
    if (have != tokens) {
      REDLINE_TRY(copy_numbers(from, key, *have, count, size, to));
      continue;
    }
    std::vector<std::string> texts(tokens->strings.begin(), tokens->strings.end());
    while (texts.size() < size) texts.push_back(unused_token(texts.size()));
    to.put_strings(key, texts);
  }
  if (count < size && from.find("tokenizer.ggml.token_type") == nullptr) {
    std::vector<std::int32_t> types(size, unused_type);
    std::fill_n(types.begin(), count, normal_type);
    to.put_i32s("tokenizer.ggml.token_type", types);
  }
  return {};
}

void put_byte_tokenizer(std::uint32_t size, gguf_writer& to) {
  std::vector<std::string> tokens;
  std::vector<std::int32_t> types;
  std::vector<std::string> merges;
  const auto add = [&](std::string text, std::int32_t type) {
    if (tokens.size() >= size) return false;
    tokens.push_back(std::move(text));
    types.push_back(type);
    return true;
  };
  for (const char* control : {"<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|fim_prefix|>", "<|fim_middle|>",
                              "<|fim_suffix|>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>"}) {
    add(control, control_type);
  }
  const std::uint32_t end_of_turn = std::min<std::uint32_t>(2, size - 1);
  for (unsigned byte = 0; byte < 256; ++byte) add(byte_character(static_cast<unsigned char>(byte)), normal_type);
  constexpr std::string_view pairs =
      "th he in er an re on at en nd ti es or te of ed is it al ar st to nt ng se ha as ou io le ve co me de hi ri";
  for (std::size_t i = 0; i < pairs.size(); i += 3) {
    if (add(std::string(pairs.substr(i, 2)), normal_type)) merges.push_back({pairs[i], ' ', pairs[i + 1]});
  }
  while (add(unused_token(tokens.size()), unused_type)) {
  }
  to.put_string("tokenizer.ggml.model", "gpt2");
  to.put_string("tokenizer.ggml.pre", "qwen2");
  to.put_strings("tokenizer.ggml.tokens", tokens);
  to.put_i32s("tokenizer.ggml.token_type", types);
  to.put_strings("tokenizer.ggml.merges", merges);
  to.put_u32("tokenizer.ggml.eos_token_id", end_of_turn);
  to.put_u32("tokenizer.ggml.bos_token_id", 0);
  to.put_u32("tokenizer.ggml.padding_token_id", 0);
  to.put_bool("tokenizer.ggml.add_bos_token", false);
  to.put_string("tokenizer.chat_template",
                "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + "
                "'<|im_end|>' + '\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}"
                "{% endif %}");
}

}  // namespace redline::gguf
