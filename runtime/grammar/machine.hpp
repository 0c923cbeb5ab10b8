#pragma once

#include <algorithm>
#include <array>
#include <bitset>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace redline::grammar {

using byte_set = std::bitset<256>;

/// Where a machine is in its text: a few numbers whose meaning is the machine's own. A value that travels and is copied
/// at every byte, so it has a fixed bound.
class state {
 public:
  static constexpr std::size_t cells_max = 128;

  state() = default;
  state(const state& other) { *this = other; }
  state& operator=(const state& other) {
    size_ = other.size_;
    std::copy_n(other.cells_.begin(), size_, cells_.begin());
    return *this;
  }
  /// Cells beyond cells_max are left out.
  explicit state(std::span<const std::uint32_t> cells) {
    for (const auto c : cells.first(std::min(cells.size(), cells_max))) push(c);
  }

  [[nodiscard]] std::size_t size() const { return size_; }
  std::uint32_t& operator[](std::size_t i) { return cells_[i]; }
  std::uint32_t operator[](std::size_t i) const { return cells_[i]; }
  void push(std::uint32_t cell) { cells_[size_++] = cell; }
  void drop(std::size_t count) { size_ -= static_cast<std::uint32_t>(count); }
  [[nodiscard]] std::span<const std::uint32_t> cells() const { return {cells_.data(), size_}; }

 private:
  std::uint32_t size_ = 0;
  std::array<std::uint32_t, cells_max> cells_;  // the first size_ are set
};

/// A language that is most of what may come at many places, such as a string's plain characters: a table, so that the
/// tokens in it are found once and for all.
struct plain_text {
  static constexpr std::size_t states_max = 8;
  static constexpr std::uint8_t outside = 0xff;
  /// By state and byte: the state behind it, or outside. A character begins where it stands at 0.
  std::array<std::array<std::uint8_t, 256>, states_max> next;

  plain_text() {
    for (auto& row : next) row.fill(outside);
  }
  /// These bytes in any order, each a character.
  explicit plain_text(const byte_set& bytes) : plain_text() {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      if (bytes[byte]) next[0][byte] = 0;
    }
  }
};

/// A language over bytes as a deterministic machine. Immutable, so safe from any thread.
class machine {
 public:
  virtual ~machine() = default;

  [[nodiscard]] virtual state begin() const = 0;
  /// False when no text of the language goes on so; `s` is then of no use any more.
  [[nodiscard]] virtual bool advance(state& s, std::uint8_t byte) const = 0;
  /// The text so far is whole; it may be possible to go on.
  [[nodiscard]] virtual bool may_end(const state& s) const = 0;
  /// It is whole and nothing can follow.
  [[nodiscard]] virtual bool is_over(const state& s) const = 0;
  /// The only byte that can come, where that is known without trying them all.
  [[nodiscard]] virtual std::optional<std::uint8_t> known_byte(const state&) const { return std::nullopt; }

  /// The plain text, at its state 0, of which up to `most` characters may begin here, or null. `advance` takes what the
  /// table takes, but for what begins with `beside`, which it may take as well and stand elsewhere. Of static storage:
  /// what is known of it outlives the machine.
  struct plain_place {
    const plain_text* text = nullptr;
    std::uint32_t most = UINT32_MAX;
    std::optional<std::uint8_t> beside{};
  };
  [[nodiscard]] virtual plain_place plain(const state&) const { return {}; }

  /// Something beside the text goes here before it can go on (a copied span): this many tokens without a rule follow,
  /// or 0 where the text itself goes on. `stands`: not even their count is decided yet.
  [[nodiscard]] virtual std::uint32_t free_tokens(const state&) const { return 0; }
  virtual void pass_free_token(state&) const {}
  [[nodiscard]] virtual bool stands(const state&) const { return false; }

  /// `s`, which may come from a peer, can do no harm here.
  [[nodiscard]] virtual bool is_possible(const state& s) const = 0;
};

}  // namespace redline::grammar
