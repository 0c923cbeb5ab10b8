#include "runtime/grammar/byte_tree.hpp"

#include <algorithm>

namespace redline::grammar {

const std::array<std::uint64_t, 256> kinds_of_characters = [] {
  std::array<std::uint64_t, 256> kinds{};
  std::size_t count = 0;
  const auto add = [&](std::size_t first, std::size_t last) {
    for (std::size_t b = first; b <= last; ++b) kinds[b] = std::uint64_t{1} << count;
    ++count;
  };
  add(0, 0x1f);
  kinds[0x7f] = kinds[0];
  add('0', '9');
  add('a', 'z');
  add('A', 'Z');
  for (const char c : {'\t', '\n', '\r'}) add(static_cast<std::size_t>(c), static_cast<std::size_t>(c));
  for (std::size_t b = ' '; b < 0x7f; ++b) {
    if (kinds[b] == 0) add(b, b);
  }
  // 0xc2, 0xe2 and 0xef begin the characters that classes tend to leave out, such as line ends and no-break spaces.
  add(0xc2, 0xc2);
  add(0xc3, 0xdf);
  add(0xe0, 0xe1);
  add(0xe2, 0xe2);
  add(0xe3, 0xee);
  add(0xef, 0xef);
  add(0xf0, 0xf4);
  return kinds;
}();

const free_text& utf8_text() {
  static const free_text table = free_text::characters(bytes_between(0, 0x7f));
  return table;
}

byte_tree byte_tree::of(std::vector<std::pair<std::string_view, token>> tokens) {
  std::sort(tokens.begin(), tokens.end());
  byte_tree out;
  auto& nodes = out.nodes;
  std::vector<std::uint32_t> open;  // the nodes of the last token's bytes
  std::string_view before;
  for (const auto& [bytes, t] : tokens) {
    const auto same = static_cast<std::size_t>(
        std::mismatch(bytes.begin(), bytes.end(), before.begin(), before.end()).first - bytes.begin());
    for (; open.size() > same; open.pop_back()) nodes[open.back()].next = static_cast<std::uint32_t>(nodes.size());
    for (std::size_t k = 0; k < same; ++k) {
      auto& depth = nodes[open[k]].depth;
      depth = std::max(depth, static_cast<std::uint16_t>(bytes.size() - k));
    }
    for (std::size_t k = same; k < bytes.size(); ++k) {
      open.push_back(static_cast<std::uint32_t>(nodes.size()));
      nodes.push_back({.tokens = static_cast<std::uint32_t>(out.tokens.size()),
                       .depth = static_cast<std::uint16_t>(bytes.size() - k),
                       .byte = static_cast<std::uint8_t>(bytes[k])});
    }
    out.tokens.push_back(t);
    before = bytes;
  }
  const auto count = static_cast<std::uint32_t>(nodes.size());
  for (const auto n : open) nodes[n].next = count;
  nodes.push_back({.next = count, .tokens = static_cast<std::uint32_t>(out.tokens.size())});
  out.kinds.resize(nodes.size());
  for (std::uint32_t n = count; n-- > 0;) {
    out.kinds[n] = kinds_of_characters[nodes[n].byte];
    for (std::uint32_t child = n + 1; child < nodes[n].next; child = nodes[child].next)
      out.kinds[n] |= out.kinds[child];
  }
  const auto is_utf8 = out.find_whole(utf8_text());
  for (std::uint32_t n = 0; n < count; ++n) {
    if ((is_utf8[n] & 1) == 0) out.kinds[n] |= malformed_text;
  }
  return out;
}

std::vector<std::uint8_t> byte_tree::find_whole(const free_text& table) const {
  std::vector<std::uint8_t> whole(nodes.size());
  for (auto n = end(); n-- > 0;) {
    std::uint8_t children_fit = 0xff;
    for (std::uint32_t child = n + 1; child < nodes[n].next; child = nodes[child].next) children_fit &= whole[child];
    for (std::size_t at = 0; at < free_text::states_max; ++at) {
      const auto then = table.next[at][nodes[n].byte];
      if (then != free_text::outside && (children_fit >> then & 1) != 0)
        whole[n] |= static_cast<std::uint8_t>(1U << at);
    }
  }
  return whole;
}

}  // namespace redline::grammar
