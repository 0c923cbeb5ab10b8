#include "runtime/text/spm_tokenizer.hpp"

#include <algorithm>
#include <utility>

#include "runtime/base/pause_point.hpp"
#include "runtime/base/utf8.hpp"

namespace redline::text {
namespace {

constexpr std::string_view escaped_space = "\u2581";

std::string byte_text(std::size_t byte) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  return {'<', '0', 'x', digits[byte >> 4], digits[byte & 15], '>'};
}

std::size_t pair_index(char left, char right) {
  return static_cast<std::size_t>(static_cast<unsigned char>(left)) * 256 + static_cast<unsigned char>(right);
}

/// Length of the character at `at`; 1 if it is not a valid character.
std::size_t character_bytes(std::string_view text, std::size_t at) {
  const utf8::unit unit = utf8::first_unit(text.substr(at));
  return unit.what == utf8::unit::kind::character ? unit.size_bytes : 1;
}

std::string unescaped(std::string_view text) {
  std::string out;
  for (;;) {
    const std::size_t at = text.find(escaped_space);
    if (at == std::string_view::npos) return out.append(text);
    out.append(text.substr(0, at)).push_back(' ');
    text.remove_prefix(at + escaped_space.size());
  }
}

}  // namespace

struct spm_tokenizer::scratch {
  static constexpr std::int32_t none = -1;
  struct part {
    std::uint32_t begin;
    std::uint32_t size;  // 0 means merged away
    std::int32_t before;
    std::int32_t after;
  };
  struct possible_merge {
    float score;
    std::int32_t left;
    std::int32_t right;
    std::uint32_t size;
    /// For std::push_heap, which puts the greatest on top: the highest score, then the leftmost.
    bool operator<(const possible_merge& other) const {
      return score != other.score ? score < other.score : left > other.left;
    }
  };
  std::string_view text;
  std::vector<part> parts;
  std::vector<possible_merge> heap;
};

result<std::shared_ptr<const tokenizer>> spm_tokenizer::make(vocabulary vocab, const gguf::gguf_file& file) {
  std::shared_ptr<spm_tokenizer> out(new spm_tokenizer(std::move(vocab)));
  REDLINE_TRY(out->load(file));
  return std::shared_ptr<const tokenizer>(std::move(out));
}

result<void> spm_tokenizer::load(const gguf::gguf_file& file) {
  byte_tokens_.fill(-1);
  for (std::size_t byte = 0; byte < 256; ++byte) {
    const auto id = vocab().find(byte_text(byte));
    if (!id || vocab().type(*id) != token_type::byte) continue;
    byte_tokens_[byte] = *id;
    piece_entry(*id).assign(1, static_cast<char>(byte));
  }
  for (token id = 0; vocab().contains(id); ++id) {
    const token_type type = vocab().type(id);
    const std::string_view text = vocab().text(id);
    if (type == token_type::normal) piece_entry(id) = unescaped(text);
    const bool mergeable = type == token_type::normal || type == token_type::user_defined || type == token_type::unused;
    if (!mergeable || text.empty()) continue;
    mergeable_[text] = id;
    mergeable_bytes_max_ = std::max(mergeable_bytes_max_, text.size());
    for (std::size_t i = 1; i < text.size(); ++i) side_by_side_[pair_index(text[i - 1], text[i])] = true;
  }
  for (std::size_t byte = 0; byte < 256; ++byte) {
    if (byte_tokens_[byte] >= 0) continue;
    if (!vocab().unknown()) {
      return failure{errc::unsupported_format, file.path() + ": metadata 'tokenizer.ggml.tokens': no token " +
                                                   byte_text(byte) + " and no unknown token to replace it"};
    }
    byte_tokens_[byte] = *vocab().unknown();
  }
  set_cuts([this](char left, char right) {
    return !side_by_side_[pair_index(left == ' ' ? escaped_space.back() : left,
                                     right == ' ' ? escaped_space.front() : right)];
  });
  return {};
}

void spm_tokenizer::encode_ordinary(std::string_view text, bool first_of_segment, std::vector<token>& out) const {
  // Positions have 32 bits; escaping makes a text at most three times longer.
  constexpr std::size_t stretch_bytes_max = 1U << 29;
  std::string escaped;
  for (bool first = first_of_segment; !text.empty(); first = false) {
    const std::string_view stretch = text.substr(0, stretch_bytes_max);
    text.remove_prefix(stretch.size());
    escaped.clear();
    escaped.reserve(stretch.size() + stretch.size() / 2 + 3);
    if (first && vocab().adds_space_prefix()) escaped.append(escaped_space);
    for (const char byte : stretch) {
      if (byte == ' ')
        escaped.append(escaped_space);
      else
        escaped.push_back(byte);
    }
    encode_escaped(escaped, out);
  }
}

void spm_tokenizer::push_pair(scratch& work, std::int32_t left) const {
  const scratch::part& first = work.parts[static_cast<std::size_t>(left)];
  if (first.after == scratch::none) return;
  const std::uint32_t size = first.size + work.parts[static_cast<std::size_t>(first.after)].size;
  if (size > mergeable_bytes_max_) return;
  const auto known = mergeable_.find(work.text.substr(first.begin, size));
  if (known == mergeable_.end() || vocab().score(known->second) == vocabulary::unmade) return;
  work.heap.push_back({vocab().score(known->second), left, first.after, size});
  std::push_heap(work.heap.begin(), work.heap.end());
}

void spm_tokenizer::encode_escaped(std::string_view text, std::vector<token>& out) const {
  scratch work;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size(); at += character_bytes(text, at)) {
    if (at == 0 || side_by_side_[pair_index(text[at - 1], text[at])]) continue;
    encode_section(text.substr(begin, at - begin), work, out);
    begin = at;
  }
  encode_section(text.substr(begin), work, out);
}

void spm_tokenizer::encode_section(std::string_view section, scratch& work, std::vector<token>& out) const {
  work.text = section;
  auto& parts = work.parts;
  parts.clear();
  for (std::size_t at = 0; at < section.size();) {
    const std::size_t size = character_bytes(section, at);
    const auto index = static_cast<std::int32_t>(parts.size());
    parts.push_back({static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(size), index - 1, index + 1});
    at += size;
  }
  if (parts.empty()) return;
  parts.back().after = scratch::none;
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) push_pair(work, static_cast<std::int32_t>(i));

  while (!work.heap.empty()) {
    pause_point();
    std::pop_heap(work.heap.begin(), work.heap.end());
    const scratch::possible_merge best = work.heap.back();
    work.heap.pop_back();
    auto& left = parts[static_cast<std::size_t>(best.left)];
    auto& right = parts[static_cast<std::size_t>(best.right)];
    // Stale if one side has grown or is gone.
    if (left.size == 0 || right.size == 0 || left.size + right.size != best.size) continue;
    left.size = best.size;
    right.size = 0;
    left.after = right.after;
    if (left.after != scratch::none) parts[static_cast<std::size_t>(left.after)].before = best.left;
    if (left.before != scratch::none) push_pair(work, left.before);
    push_pair(work, best.left);
  }

  for (std::int32_t i = 0; i != scratch::none; i = parts[static_cast<std::size_t>(i)].after) {
    const scratch::part& p = parts[static_cast<std::size_t>(i)];
    const auto known = mergeable_.find(section.substr(p.begin, p.size));
    if (known != mergeable_.end()) {
      out.push_back(known->second);
      continue;
    }
    for (const char byte : section.substr(p.begin, p.size))
      out.push_back(byte_tokens_[static_cast<unsigned char>(byte)]);
  }
}

}  // namespace redline::text
