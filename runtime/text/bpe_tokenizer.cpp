#include "runtime/text/bpe_tokenizer.hpp"

#include <algorithm>
#include <bit>
#include <optional>
#include <string>
#include <utility>

#include "runtime/base/assert.hpp"
#include "runtime/base/pause_point.hpp"
#include "runtime/base/utf8.hpp"
#include "runtime/text/pretokenizer_table.hpp"

namespace redline::text {
namespace {

/// GPT-2's alphabet: one printable character for each byte; bytes that are not printable in Latin-1 get the characters
/// from U+0100 on, in order.
struct byte_alphabet {
  std::array<std::string, 256> characters;
  std::array<int, 0x144> bytes;  // by code point; -1 if there is none

  byte_alphabet() {
    bytes.fill(-1);
    int next = 0x100;
    for (int byte = 0; byte < 256; ++byte) {
      const bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
      const int code_point = printable ? byte : next++;
      bytes[static_cast<std::size_t>(code_point)] = byte;
      std::string& out = characters[static_cast<std::size_t>(byte)];
      if (code_point < 0x80) {
        out = {static_cast<char>(code_point)};
      } else {
        out = {static_cast<char>(0xC0 | (code_point >> 6)), static_cast<char>(0x80 | (code_point & 0x3F))};
      }
    }
  }

  /// The bytes that a token's text represents; nullopt if it has a character outside the alphabet.
  [[nodiscard]] std::optional<std::string> decoded(std::string_view text) const {
    std::string out;
    while (!text.empty()) {
      const utf8::unit unit = utf8::first_unit(text);
      if (unit.what != utf8::unit::kind::character || unit.size_bytes > 2) return std::nullopt;
      const auto lead = static_cast<unsigned char>(text[0]);
      const std::size_t code_point =
          unit.size_bytes == 1 ? lead : ((lead & 0x1FU) << 6 | (static_cast<unsigned char>(text[1]) & 0x3FU));
      if (code_point >= bytes.size() || bytes[code_point] < 0) return std::nullopt;
      out.push_back(static_cast<char>(bytes[code_point]));
      text.remove_prefix(unit.size_bytes);
    }
    return out;
  }
};

const byte_alphabet& alphabet() {
  static const byte_alphabet one;
  return one;
}

/// Whether the byte never occurs in UTF-8 text. Vocabularies may lack such bytes.
bool never_in_utf8(std::size_t byte) { return byte == 0xC0 || byte == 0xC1 || byte >= 0xF5; }

std::uint64_t pair_of(std::int32_t left, std::int32_t right) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 | static_cast<std::uint32_t>(right);
}

std::size_t hash_of(std::uint64_t pair) {
  pair *= 0x9E3779B97F4A7C15ULL;
  return static_cast<std::size_t>(pair ^ (pair >> 32));
}

}  // namespace

/// Reused for all pieces of one text.
struct bpe_tokenizer::scratch {
  static constexpr std::int32_t none = -1;
  /// Doubly linked in the order of the text; a merge replaces the left part and unlinks the right one.
  struct part {
    symbol what;
    std::int32_t before;
    std::int32_t after;
    std::uint32_t begin;
    std::uint32_t size;  // 0 means merged away
  };
  struct possible_merge {
    std::int32_t rank;
    std::int32_t left;
    std::int32_t right;
    symbol left_symbol;
    symbol right_symbol;
    symbol outcome;
    /// For std::push_heap, which puts the greatest on top: the lowest rank, then the leftmost.
    bool operator<(const possible_merge& other) const {
      return rank != other.rank ? rank > other.rank : left > other.left;
    }
  };
  /// The output position where an equal piece was encoded before, because code repeats itself.
  struct earlier_piece {
    std::string_view piece;
    std::size_t begin = 0;
    std::size_t count = 0;
  };
  static constexpr std::size_t earlier_pieces_max = 4096;  // a power of two; 128 KiB
  std::vector<part> parts;
  std::vector<possible_merge> heap;
  std::vector<earlier_piece> earlier = std::vector<earlier_piece>(earlier_pieces_max);
};

result<std::shared_ptr<const tokenizer>> bpe_tokenizer::make(vocabulary vocab, const gguf::gguf_file& file) {
  auto cutter = pretokenizer::make(vocab.pretokenizer_name());
  if (!cutter) return failure{cutter.error().code, file.path() + ": " + cutter.error().context};
  std::shared_ptr<bpe_tokenizer> out(new bpe_tokenizer(std::move(vocab)));
  out->pretokenizer_ = std::make_unique<pretokenizer>(std::move(*cutter));
  REDLINE_TRY(out->load_symbols(file));
  REDLINE_TRY(out->load_merges(file));
  out->set_cuts(pretokenizer::always_cuts);
  return std::shared_ptr<const tokenizer>(std::move(out));
}

result<void> bpe_tokenizer::load_symbols(const gguf::gguf_file& file) {
  const pretokenizer_kind* kind = find_pretokenizer(vocab().pretokenizer_name());
  REDLINE_ASSERT(kind != nullptr, "make() took its expressions from there");
  whole_pieces_first_ = kind->whole_pieces_first;
  byte_symbols_.fill(-1);
  for (token id = 0; vocab().contains(id); ++id) {
    if (vocab().type(id) != token_type::normal) continue;
    const std::string_view text = vocab().text(id);
    auto bytes = alphabet().decoded(text);
    const bool spelled = bytes.has_value();
    // Merging never yields a text outside the alphabet, so it represents itself.
    std::string& piece = piece_entry(id);
    piece = spelled ? std::move(*bytes) : std::string(text);
    if (!spelled) continue;
    if (piece.size() == 1) byte_symbols_[static_cast<unsigned char>(piece[0])] = id;
    if (whole_pieces_first_ && !piece.empty()) by_bytes_[piece] = id;
  }
  bool complete = true;
  for (std::size_t byte = 0; byte < 256; ++byte) {
    if (byte_symbols_[byte] >= 0) {
      byte_tokens_[byte] = {byte_symbols_[byte]};
      continue;
    }
    complete = false;
    if (never_in_utf8(byte)) continue;
    if (!vocab().unknown()) {
      return failure{errc::unsupported_format, file.path() + ": metadata 'tokenizer.ggml.tokens': no token for byte " +
                                                   std::to_string(byte) + " and no unknown token to replace it"};
    }
    byte_tokens_[byte] = {*vocab().unknown()};
  }
  // Bytes that occur only in invalid text become U+FFFD.
  for (std::size_t byte = 0; byte < 256; ++byte) {
    if (!byte_tokens_[byte].empty()) continue;
    for (const std::size_t part : {0xEF, 0xBF, 0xBD}) byte_tokens_[byte].push_back(byte_tokens_[part].front());
  }
  set_keeps_every_byte(complete);
  return {};
}

result<void> bpe_tokenizer::load_merges(const gguf::gguf_file& file) {
  constexpr std::string_view key = "tokenizer.ggml.merges";
  const auto malformed = [&](const std::string& why) {
    return failure{errc::file_malformed, file.path() + ": metadata '" + std::string(key) + "': " + why};
  };
  REDLINE_TRY_ASSIGN(const gguf::array* lines, file.get_array(key));
  if (lines->element_type != gguf::value_type::string) return malformed("expected strings");
  merges_.resize(std::bit_ceil(2 * lines->size() + 2));

  std::unordered_map<std::string, symbol> symbols;
  symbols.reserve(vocab().size() + 256);
  for (std::size_t byte = 0; byte < 256; ++byte) {
    // Reserves a symbol for every byte, so that a merge may name a byte that has no token.
    if (byte_symbols_[byte] < 0) byte_symbols_[byte] = static_cast<symbol>(vocab().size() + byte);
    symbols[alphabet().characters[byte]] = byte_symbols_[byte];
  }
  for (token id = 0; vocab().contains(id); ++id) {
    if (vocab().type(id) == token_type::normal) symbols[std::string(vocab().text(id))] = id;
  }
  auto next = static_cast<symbol>(vocab().size() + 256);
  const auto symbol_of = [&](std::string text) {
    const auto [it, fresh] = symbols.try_emplace(std::move(text), next);
    if (fresh) ++next;
    return it->second;
  };
  for (std::size_t rank = 0; rank < lines->size(); ++rank) {
    const std::string_view line = lines->strings[rank];
    const std::size_t blank = line.find(' ');
    if (blank == 0 || blank == std::string_view::npos || blank + 1 == line.size() ||
        line.find(' ', blank + 1) != std::string_view::npos) {
      return malformed("merge " + std::to_string(rank) + ": expected two strings separated by a space");
    }
    const std::string left(line.substr(0, blank));
    const std::string right(line.substr(blank + 1));
    const symbol left_symbol = symbol_of(left);
    const symbol right_symbol = symbol_of(right);
    insert({pair_of(left_symbol, right_symbol), static_cast<std::int32_t>(rank), symbol_of(left + right)});
  }
  return {};
}

void bpe_tokenizer::insert(const merge& added) {
  const std::size_t mask = merges_.size() - 1;
  std::size_t at = hash_of(added.pair) & mask;
  while (merges_[at].pair != no_pair && merges_[at].pair != added.pair) at = (at + 1) & mask;
  if (merges_[at].pair == no_pair) merges_[at] = added;  // If a pair is listed twice, the first rank counts.
}

const bpe_tokenizer::merge* bpe_tokenizer::find(symbol left, symbol right) const {
  const std::uint64_t pair = pair_of(left, right);
  const std::size_t mask = merges_.size() - 1;
  for (std::size_t at = hash_of(pair) & mask; merges_[at].pair != no_pair; at = (at + 1) & mask) {
    if (merges_[at].pair == pair) return &merges_[at];
  }
  return nullptr;
}

void bpe_tokenizer::encode_ordinary(std::string_view text, bool, std::vector<token>& out) const {
  // 2^30, because positions inside a piece have 32 bits. Cutting a text of that size is by far the lesser harm.
  constexpr std::size_t piece_bytes_max = 1U << 30;
  std::vector<std::string_view> pieces;
  pretokenizer_->split(text, pieces);
  scratch work;
  for (std::string_view piece : pieces) {
    pause_point();
    for (; piece.size() > piece_bytes_max; piece.remove_prefix(piece_bytes_max)) {
      encode_piece(piece.substr(0, piece_bytes_max), work, out);
    }
    auto& known = work.earlier[std::hash<std::string_view>{}(piece) % scratch::earlier_pieces_max];
    if (known.piece == piece) {
      for (std::size_t i = 0; i < known.count; ++i) out.push_back(out[known.begin + i]);
      continue;
    }
    const std::size_t begin = out.size();
    encode_piece(piece, work, out);
    known = {piece, begin, out.size() - begin};
  }
}

void bpe_tokenizer::push_pair(scratch& work, std::int32_t left) const {
  const std::int32_t right = work.parts[static_cast<std::size_t>(left)].after;
  if (right == scratch::none) return;
  const symbol left_symbol = work.parts[static_cast<std::size_t>(left)].what;
  const symbol right_symbol = work.parts[static_cast<std::size_t>(right)].what;
  const merge* known = find(left_symbol, right_symbol);
  if (known == nullptr) return;
  work.heap.push_back({known->rank, left, right, left_symbol, right_symbol, known->outcome});
  std::push_heap(work.heap.begin(), work.heap.end());
}

void bpe_tokenizer::encode_piece(std::string_view piece, scratch& work, std::vector<token>& out) const {
  if (whole_pieces_first_) {
    const auto whole = by_bytes_.find(piece);
    if (whole != by_bytes_.end()) return out.push_back(whole->second);
  }
  auto& parts = work.parts;
  const auto count = static_cast<std::int32_t>(piece.size());
  parts.clear();
  for (std::int32_t i = 0; i < count; ++i) {
    const auto byte = static_cast<unsigned char>(piece[static_cast<std::size_t>(i)]);
    parts.push_back(
        {byte_symbols_[byte], i - 1, i + 1 < count ? i + 1 : scratch::none, static_cast<std::uint32_t>(i), 1});
  }
  work.heap.clear();
  for (std::int32_t i = 0; i + 1 < count; ++i) push_pair(work, i);

  while (!work.heap.empty()) {
    pause_point();
    std::pop_heap(work.heap.begin(), work.heap.end());
    const scratch::possible_merge best = work.heap.back();
    work.heap.pop_back();
    auto& left = parts[static_cast<std::size_t>(best.left)];
    auto& right = parts[static_cast<std::size_t>(best.right)];
    // Stale if one side has merged since: it is then gone or another symbol, and never becomes the old one again.
    if (left.size == 0 || right.size == 0 || left.what != best.left_symbol || right.what != best.right_symbol) continue;
    left.what = best.outcome;
    left.size += right.size;
    right.size = 0;
    left.after = right.after;
    if (left.after != scratch::none) parts[static_cast<std::size_t>(left.after)].before = best.left;
    if (left.before != scratch::none) push_pair(work, left.before);
    push_pair(work, best.left);
  }

  for (std::int32_t i = 0; i != scratch::none; i = parts[static_cast<std::size_t>(i)].after) {
    const scratch::part& p = parts[static_cast<std::size_t>(i)];
    if (is_token(p.what))
      out.push_back(p.what);
    else
      append_bytes(piece.substr(p.begin, p.size), out);
  }
}

void bpe_tokenizer::append_bytes(std::string_view bytes, std::vector<token>& out) const {
  for (const char byte : bytes) {
    const std::vector<token>& tokens = byte_tokens_[static_cast<unsigned char>(byte)];
    out.insert(out.end(), tokens.begin(), tokens.end());
  }
}

}  // namespace redline::text
