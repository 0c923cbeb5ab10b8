#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/ids.hpp"
#include "runtime/grammar/automata/byte_automaton.hpp"

namespace redline::grammar {

/// The kinds of characters by first byte, a bit for each kind: control characters, digits, lowercase and uppercase
/// letters, each other ASCII character, and a few ranges beyond ASCII. Bytes that begin no character are 0.
extern const std::array<std::uint64_t, 256> kinds_of_characters;
constexpr std::uint64_t malformed_text = std::uint64_t{1} << 63;  // the bytes are not valid UTF-8

/// Any characters.
const free_text& utf8_text();

/// Texts of tokens as a tree of bytes. Nodes are stored depth first: a node's children follow it, and `next` is the
/// first node after its subtree. Tokens have the same order: a subtree's are tokens[nodes[n].tokens] up to, not
/// including, tokens[nodes[nodes[n].next].tokens].
struct byte_tree {
  struct node {
    std::uint32_t next = 0;
    std::uint32_t tokens = 0;
    std::uint16_t depth = 1;  // bytes to the end of the longest token in its subtree, including its own byte
    std::uint8_t byte = 0;
  };
  std::vector<node> nodes;           // and one after the last
  std::vector<std::uint64_t> kinds;  // by node: the kinds of characters in its subtree, and malformed_text
  std::vector<token> tokens;

  static byte_tree of(std::vector<std::pair<std::string_view, token>> tokens);
  [[nodiscard]] std::uint32_t end() const { return static_cast<std::uint32_t>(nodes.size() - 1); }
  /// By node: a bit for each state of the table from which the node's whole subtree fits.
  [[nodiscard]] std::vector<std::uint8_t> find_whole(const free_text& table) const;
};

}  // namespace redline::grammar
