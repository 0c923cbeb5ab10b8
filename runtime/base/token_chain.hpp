#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/ids.hpp"

namespace redline {

/// A digest of a text prefix, extended token by token: the same on every machine and in every version. Equal digests
/// are only a hint; a caller that acts on one compares tokens.
class token_chain {
 public:
  token_chain() = default;
  /// Continues from a prefix with this value.
  explicit constexpr token_chain(std::uint64_t value) : state_(value) {}
  constexpr token_chain& add(std::span<const token> tokens) {
    for (const token t : tokens) state_ = mix(state_, static_cast<std::uint32_t>(t));
    return *this;
  }
  [[nodiscard]] constexpr std::uint64_t value() const { return state_; }

  /// One step of a 64-bit hash: every bit of the word changes all bits of later values.
  [[nodiscard]] static constexpr std::uint64_t mix(std::uint64_t state, std::uint64_t word) {
    state = (state ^ word) * 0x9e3779b97f4a7c15;
    return state ^ (state >> 32);
  }

 private:
  std::uint64_t state_ = 1;
};

/// Prefixes are announced and compared in steps of this many tokens.
inline constexpr std::uint32_t prefix_block_tokens = 256;

/// The key of a prefix in the scope that shares it: other scopes have other keys for the same text.
[[nodiscard]] constexpr std::uint64_t prefix_key(tenant_id scope, std::uint64_t chain) {
  return token_chain::mix(token_chain::mix(token_chain().value(), scope.value), chain);
}

/// The chains of a prompt's prefixes of 1, 2, 3 ... whole blocks.
[[nodiscard]] inline std::vector<std::uint64_t> chain_prefixes(std::span<const token> prompt) {
  std::vector<std::uint64_t> out;
  token_chain chain;
  for (; prompt.size() >= prefix_block_tokens; prompt = prompt.subspan(prefix_block_tokens)) {
    out.push_back(chain.add(prompt.first(prefix_block_tokens)).value());
  }
  return out;
}

}  // namespace redline
