#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/kv/page_pool.hpp"
#include "runtime/kv/page_table.hpp"

namespace redline::test {

/// Four page tables over one pool together with an obvious model: a list of tokens for each table, and for each slot
/// the key that was last written to it; window pages likewise. `wrong` describes where the two differ.
class plain_pages {
 public:
  explicit plain_pages(kv::pool_size size)
      : pool(size),
        tables(4),
        storage_(std::size_t{size.pages} * kv::page_tokens),
        window_storage_(std::size_t{size.window_pages} * kv::page_tokens),
        model_(4) {}

  kv::page_pool pool;
  std::vector<kv::page_table> tables;

  /// Returns false if the table accepts tokens without space for them, or refuses some that fit.
  [[nodiscard]] bool insert(std::size_t t, std::uint32_t at, std::uint32_t count) {
    const bool fits = tables[t].pages_needed(pool, count) <= pool.available();
    if (tables[t].insert(pool, at, count) != fits) return false;
    if (!fits) return true;
    auto& tokens = model_[t];
    const bool exact = at == 0 || tokens[at - 1].exact;
    const auto where = places(t);
    for (std::uint32_t i = at; i < at + count; ++i) {
      tokens.insert(tokens.begin() + i, token{++last_id_, i, exact});
      storage_[where[i].first] = {last_id_, std::int64_t{i} - where[i].second};
      if (pool.windows() == nullptr) continue;
      const auto at_window = window_slot(where[i].first);
      if (!at_window) return false;  // new tokens have both
      window_storage_[*at_window] = storage_[where[i].first];
    }
    return true;
  }
  void splice(std::size_t t, std::uint32_t at, std::uint32_t removed, std::int32_t shift) {
    tables[t].splice(pool, at, removed, shift);
    auto& tokens = model_[t];
    tokens.erase(tokens.begin() + at, tokens.begin() + at + removed);
    for (std::size_t i = at; i < tokens.size(); ++i) {
      tokens[i].position += shift;
      tokens[i].exact = false;
    }
  }
  void truncate(std::size_t t, std::uint32_t keep) {
    tables[t].truncate(pool, keep);
    if (keep < model_[t].size()) model_[t].resize(keep);
  }
  void apply(const std::vector<kv::token_move>& moves) {
    for (const kv::token_move& m : moves) {
      for (std::uint32_t i = 0; i < m.count; ++i) {
        const slot from = storage_[m.from_slot + i];
        storage_[m.to_slot + i] = {from.id, from.position + m.turn};
        if (m.window_from == m.nowhere || m.window_to == m.nowhere) continue;
        const slot seen = window_storage_[m.window_from + i];
        window_storage_[m.window_to + i] = {seen.id, seen.position + m.turn};
      }
    }
  }
  void share(std::size_t from, std::size_t to) {
    truncate(to, 0);
    const auto whole = tables[from].whole_pages(~0U);
    for (std::size_t i = 0; i < whole.size(); ++i) {
      tables[to].append_shared(pool, whole[i]);
      const auto first = model_[from].begin() + static_cast<std::ptrdiff_t>(i * kv::page_tokens);
      model_[to].insert(model_[to].end(), first, first + kv::page_tokens);
    }
  }
  void clear() {
    for (std::size_t t = 0; t < tables.size(); ++t) truncate(t, 0);
  }

  /// Returns an empty string if the tables contain what the model contains. Aborts if a table contradicts itself.
  [[nodiscard]] std::string wrong() const {
    pool.check_integrity();
    std::set<std::uint32_t> held;
    for (std::size_t t = 0; t < tables.size(); ++t) {
      tables[t].check_integrity();
      const std::string name = "table " + std::to_string(t);
      const auto where = places(t);
      if (where.size() != model_[t].size()) return name + " has another number of tokens";
      std::uint32_t exact_count = 0;
      for (std::size_t i = 0; i < where.size(); ++i) {
        const auto [at, offset] = where[i];
        const token& expected = model_[t][i];
        if (storage_[at].id != expected.id) return name + ", token " + std::to_string(i) + " is another token";
        if (storage_[at].position + offset != expected.position)
          return name + ", token " + std::to_string(i) + " is at another position";
        if (const auto seen = window_slot(at); seen && window_storage_[*seen] != storage_[at])
          return name + ", token " + std::to_string(i) + " has another token's window page";
        exact_count += expected.exact ? 1 : 0;
        held.insert(at / kv::page_tokens);
      }
      if (tables[t].exact_count() != exact_count) return name + " has another number of exact tokens";
    }
    return pool.free_count() == pool.pages_count() - held.size() ? "" : "a page is held that holds no token";
  }

 private:
  struct token {
    std::uint64_t id = 0;
    std::int64_t position = 0;
    bool exact = true;
  };
  /// The token whose key it contains, and the position for which that is rotated.
  struct slot {
    std::uint64_t id = 0;
    std::int64_t position = 0;
    bool operator==(const slot&) const = default;
  };

  [[nodiscard]] std::optional<std::uint32_t> window_slot(std::uint32_t at) const {
    if (pool.windows() == nullptr) return std::nullopt;
    const auto page = pool.windows()->of(page_id{at / kv::page_tokens});
    return page ? std::optional(*page * kv::page_tokens + at % kv::page_tokens) : std::nullopt;
  }
  /// Returns the slots of the table's tokens with the offsets of their pieces.
  [[nodiscard]] std::vector<std::pair<std::uint32_t, std::int32_t>> places(std::size_t t) const {
    std::vector<std::pair<std::uint32_t, std::int32_t>> all;
    for (const kv::piece& p : tables[t].pieces()) {
      for (std::uint32_t i = 0; i < p.count; ++i) all.emplace_back(p.first_slot + i, p.offset);
    }
    return all;
  }

  std::vector<slot> storage_;
  std::vector<slot> window_storage_;
  std::vector<std::vector<token>> model_;
  std::uint64_t last_id_ = 0;
};

}  // namespace redline::test
