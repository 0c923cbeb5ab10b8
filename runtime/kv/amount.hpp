#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

#include "runtime/kv/page_pool.hpp"

namespace redline::kv {

/// The kinds of memory that sequences use, each counted in its own unit.
enum class kind : std::uint8_t {
  page,         // page_tokens tokens in all layers, or in those without separate storage
  window_page,  // the same tokens in the layers that have a window
  state_slot,   // the state of a sequence's recurrent layers
  last_,
};

/// A count for each kind. Subtraction stops at 0.
struct amount {
  std::array<std::uint32_t, static_cast<std::size_t>(kind::last_)> of{};

  constexpr std::uint32_t& operator[](kind k) { return of[static_cast<std::size_t>(k)]; }
  constexpr std::uint32_t operator[](kind k) const { return of[static_cast<std::size_t>(k)]; }
  constexpr amount& operator+=(const amount& more) {
    for (std::size_t k = 0; k < of.size(); ++k) of[k] += more.of[k];
    return *this;
  }
  constexpr amount& operator-=(const amount& less) {
    for (std::size_t k = 0; k < of.size(); ++k) of[k] -= std::min(of[k], less.of[k]);
    return *this;
  }
  friend constexpr amount operator+(amount a, const amount& b) { return a += b; }
  friend constexpr amount operator-(amount a, const amount& b) { return a -= b; }
  friend constexpr amount operator*(amount a, std::uint32_t times) {
    for (std::uint32_t& each : a.of) each *= times;
    return a;
  }
  [[nodiscard]] constexpr bool fits(const amount& free) const {
    for (std::size_t k = 0; k < of.size(); ++k) {
      if (of[k] > free.of[k]) return false;
    }
    return true;
  }
  bool operator==(const amount&) const = default;
};

/// An amount of `count` pages and nothing else.
[[nodiscard]] constexpr amount pages(std::uint32_t count) {
  amount out;
  out[kind::page] = count;
  return out;
}

/// The total amount of a pool.
[[nodiscard]] constexpr amount amount_of(pool_size size) {
  amount out = pages(size.pages);
  out[kind::window_page] = size.window_pages;
  out[kind::state_slot] = size.state_slots;
  return out;
}

/// The memory that a sequence takes as it grows. A value, so that planning a pass does not access the memory itself.
struct growth {
  amount opening;                  // taken once, with the first token
  std::uint32_t room = 0;          // tokens that take nothing more
  amount per_page = pages(1);      // for each further page_tokens that are begun
  std::uint32_t drafts_max = ~0U;  // rows of one pass that can be rolled back

  [[nodiscard]] constexpr amount taken_by(std::uint32_t tokens) const {
    if (tokens == 0) return {};
    const std::uint32_t beyond = tokens - std::min(tokens, room);
    return opening + per_page * ((beyond + page_tokens - 1) / page_tokens);
  }
  /// The most tokens for which `free` suffices.
  [[nodiscard]] constexpr std::uint32_t tokens_within(const amount& free) const {
    if (!opening.fits(free)) return 0;
    const amount left = free - opening;
    std::uint64_t more = std::numeric_limits<std::uint32_t>::max();
    for (std::size_t k = 0; k < left.of.size(); ++k) {
      if (per_page.of[k] > 0) more = std::min(more, std::uint64_t{left.of[k] / per_page.of[k]} * page_tokens);
    }
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(room + more, std::numeric_limits<std::uint32_t>::max()));
  }
};

}  // namespace redline::kv
