#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

#include "runtime/base/ids.hpp"
#include "runtime/kv/page_pool.hpp"

namespace redline::kv {

/// Prefix cache: pages with exact KV, by tenant and tokens. Keeps them in the pool after the sequences that computed
/// them have ended. When pages are needed, evicts those that no sequence uses, the least recently used first.
///
/// A tree of pages: the children of a tenant are first pages, the children of a page are pages that followed it. Hashes
/// are only used to find a page; its tokens are compared.
class prefix_index {
 public:
  /// The pages of the longest known prefix of `tokens`; whole pages only. Marks them as used now.
  std::vector<page_id> find(tenant_id tenant, std::span<const token> tokens);
  /// Remembers that pages[i] holds tokens [i * page_tokens, (i + 1) * page_tokens). Pages known for the same tokens
  /// stay.
  void add(page_pool& pool, tenant_id tenant, std::span<const token> tokens, std::span<const page_id> pages);
  /// Evicts pages until the pool has `count` free ones. False, with nothing evicted, when that is not possible.
  bool make_room(page_pool& pool, std::uint32_t count);
  void clear(page_pool& pool);

  [[nodiscard]] std::uint32_t pages_count() const { return static_cast<std::uint32_t>(nodes_.size()); }
  /// Aborts when the tree contradicts its indexes or the pool.
  void check_integrity(const page_pool& pool) const;

 private:
  using node_id = std::uint64_t;  // 0: a tenant's root

  struct node {
    node_id parent = 0;
    tenant_id tenant;
    std::array<token, page_tokens> tokens{};
    page_id page;
    std::uint64_t used = 0;  // key in by_use_; later than that of every page below
    std::uint64_t hash = 0;  // key in by_hash_
    std::vector<node_id> children;
  };

  [[nodiscard]] node_id find_child(node_id parent, tenant_id tenant, std::span<const token> tokens) const;
  void use(std::span<const node_id> path);
  void erase(page_pool& pool, node_id id);

  std::unordered_map<node_id, node> nodes_;
  std::unordered_multimap<std::uint64_t, node_id> by_hash_;
  std::map<std::uint64_t, node_id> by_use_;  // the least recently used first
  node_id last_id_ = 0;
  std::uint64_t clock_ = 0;
};

}  // namespace redline::kv
