#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/base/ids.hpp"
#include "runtime/kv/page_pool.hpp"

namespace redline::kv {

/// A page that was cached or evicted; `cleared` means that all were evicted.
struct prefix_change {
  enum class kind : std::uint8_t { stored, removed, cleared };
  kind what = kind::stored;
  tenant_id tenant;
  std::uint64_t key = 0;     // prefix_key of the text up to this page's end
  std::uint64_t parent = 0;  // prefix_key of the text up to its beginning; 0 if there is no text before it
  std::array<token, page_tokens> tokens{};
};

/// Prefix cache: pages with exact KV, by tenant and tokens. It keeps them in the pool after the sequences that computed
/// them have ended. When pages are needed, it evicts unused ones, the least recently used first.
///
/// A tree of pages: the children of a tenant are first pages, the children of a page are pages that followed it. Hashes
/// only serve to find a page; its tokens are compared.
class prefix_index {
 public:
  /// The pages of the longest cached prefix of `tokens`, whole pages only. Marks them as used now.
  std::vector<page_id> find(tenant_id tenant, std::span<const token> tokens);
  /// Caches that pages[i] contains tokens [i * page_tokens, (i + 1) * page_tokens). Pages already cached for the same
  /// tokens stay, except those whose window pages are gone, and those for which is_richer says that pages[i] has more.
  void add(page_pool& pool, tenant_id tenant, std::span<const token> tokens, std::span<const page_id> pages,
           const std::function<bool(std::size_t i, page_id known)>& is_richer = {});
  /// Evicts pages until the pool has `count` free ones. Returns false, with nothing evicted, if that is not possible.
  bool make_room(page_pool& pool, std::uint32_t count);
  void clear(page_pool& pool);
  /// Keys of prefixes of whole prefix_block_tokens among the most recently used pages, looking at as many pages as
  /// `max` blocks have. Every prefix implies all shorter ones of the same text.
  [[nodiscard]] std::vector<std::uint64_t> recent_blocks(std::size_t max) const;

  /// Records changes for `take_changes` from now on.
  void note_changes() { notes_changes_ = true; }
  /// The changes since the last call, in order.
  [[nodiscard]] std::vector<prefix_change> take_changes() { return std::exchange(changes_, {}); }

  [[nodiscard]] std::uint32_t pages_count() const { return static_cast<std::uint32_t>(nodes_.size()); }
  /// Aborts if the tree is inconsistent with its indexes or the pool.
  void check_integrity(const page_pool& pool) const;
  /// The progress of incremental checks, and how many pages the last one checked.
  struct check_progress {
    std::uint64_t used = 0;
    std::size_t looked_at = 0;
  };
  /// Checks about `count` pages, continuing after the earlier check and wrapping around at the end.
  void check_some(const page_pool& pool, std::size_t count, check_progress& progress) const;

 private:
  using node_id = std::uint64_t;  // 0 is a tenant's root

  struct node {
    node_id parent = 0;
    tenant_id tenant;
    std::array<token, page_tokens> tokens{};
    page_id page;
    std::uint64_t used = 0;   // key in by_use_; later than that of every page below
    std::uint64_t chain = 0;  // token_chain of the text from its beginning to this page's end
    std::uint32_t depth = 0;  // number of pages of that text
    std::uint64_t hash = 0;   // key in by_hash_
    std::vector<node_id> children;
  };

  [[nodiscard]] node_id find_child(node_id parent, tenant_id tenant, std::span<const token> tokens) const;
  void use(std::span<const node_id> path);
  void erase(page_pool& pool, node_id id);
  void note(prefix_change::kind what, const node& n);
  void check(const page_pool& pool, node_id id) const;

  std::unordered_map<node_id, node> nodes_;
  std::unordered_multimap<std::uint64_t, node_id> by_hash_;
  std::map<std::uint64_t, node_id> by_use_;  // least recently used first
  node_id last_id_ = 0;
  std::uint64_t clock_ = 0;
  bool notes_changes_ = false;
  std::vector<prefix_change> changes_;
};

}  // namespace redline::kv
