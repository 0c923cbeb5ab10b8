#include "runtime/kv/prefix_index.hpp"

#include <algorithm>
#include <ranges>
#include <utility>

#include "runtime/base/assert.hpp"
#include "runtime/base/token_chain.hpp"

namespace redline::kv {
namespace {

std::uint64_t hash_of(std::uint64_t parent, tenant_id tenant, std::span<const token> tokens) {
  return token_chain(prefix_key(tenant, parent)).add(tokens).value();
}

}  // namespace

prefix_index::node_id prefix_index::find_child(node_id parent, tenant_id tenant, std::span<const token> tokens) const {
  const auto [first, last] = by_hash_.equal_range(hash_of(parent, tenant, tokens));
  for (auto at = first; at != last; ++at) {
    const node& n = nodes_.at(at->second);
    if (n.parent == parent && n.tenant == tenant && std::ranges::equal(tokens, n.tokens)) return at->second;
  }
  return 0;
}

/// Marks the last page first, so that a page is always evicted before its parent.
void prefix_index::use(std::span<const node_id> path) {
  for (const node_id id : path | std::views::reverse) {
    node& n = nodes_.at(id);
    by_use_.erase(n.used);
    n.used = ++clock_;
    by_use_.emplace(n.used, id);
  }
}

std::vector<page_id> prefix_index::find(tenant_id tenant, std::span<const token> tokens) {
  std::vector<page_id> pages;
  std::vector<node_id> path;
  for (; tokens.size() >= page_tokens; tokens = tokens.subspan(page_tokens)) {
    const node_id id = find_child(path.empty() ? 0 : path.back(), tenant, tokens.first(page_tokens));
    if (id == 0) break;
    path.push_back(id);
    pages.push_back(nodes_.at(id).page);
  }
  use(path);
  return pages;
}

void prefix_index::add(page_pool& pool, tenant_id tenant, std::span<const token> tokens, std::span<const page_id> pages,
                       const std::function<bool(std::size_t, page_id)>& is_richer) {
  REDLINE_ASSERT(tokens.size() >= pages.size() * page_tokens, "every page has its tokens");
  std::vector<node_id> path;
  for (std::size_t i = 0; i < pages.size(); ++i) {
    const node_id parent = path.empty() ? 0 : path.back();
    const auto own = tokens.subspan(i * page_tokens, page_tokens);
    node_id id = find_child(parent, tenant, own);
    if (id == 0) {
      id = ++last_id_;
      node n{
          .parent = parent, .tenant = tenant, .page = pages[i], .used = ++clock_, .hash = hash_of(parent, tenant, own)};
      std::ranges::copy(own, n.tokens.begin());
      const node* before = parent == 0 ? nullptr : &nodes_.at(parent);
      n.chain = (before == nullptr ? token_chain() : token_chain(before->chain)).add(own).value();
      n.depth = before == nullptr ? 1 : before->depth + 1;
      by_hash_.emplace(n.hash, id);
      by_use_.emplace(n.used, id);
      note(prefix_change::kind::stored, n);
      nodes_.emplace(id, std::move(n));
      if (parent != 0) nodes_.at(parent).children.push_back(id);
      pool.keep(pages[i]);
    } else if (node& known = nodes_.at(id);
               !pool.is_kept(pages[i]) &&
               ((pool.windows() != nullptr && !pool.windows()->of(known.page) && pool.windows()->of(pages[i])) ||
                (is_richer && is_richer(i, known.page)))) {
      pool.give_up(std::exchange(known.page, pages[i]));
      pool.keep(pages[i]);
    }
    path.push_back(id);
  }
  use(path);
}

/// Erases the subtree, leaves first: without this page, those below could no longer be found. Sequences keep their
/// references. Not recursive: a chain of a million tokens is 32,000 nodes deep.
void prefix_index::erase(page_pool& pool, node_id top) {
  const auto parent = nodes_.find(nodes_.at(top).parent);
  if (parent != nodes_.end()) std::erase(parent->second.children, top);
  std::vector<node_id> below{top};
  for (std::size_t i = 0; i < below.size(); ++i) {
    const auto& children = nodes_.at(below[i]).children;
    below.insert(below.end(), children.begin(), children.end());
  }
  for (; !below.empty(); below.pop_back()) {
    const node_id id = below.back();
    const node& n = nodes_.at(id);
    const auto [first, last] = by_hash_.equal_range(n.hash);
    by_hash_.erase(std::find_if(first, last, [id](const auto& entry) { return entry.second == id; }));
    by_use_.erase(n.used);
    note(prefix_change::kind::removed, n);
    const page_id page = n.page;
    nodes_.erase(id);
    pool.give_up(page);
  }
}

void prefix_index::note(prefix_change::kind what, const node& n) {
  if (!notes_changes_) return;
  const auto parent = nodes_.find(n.parent);
  changes_.push_back({what, n.tenant, prefix_key(n.tenant, n.chain),
                      parent == nodes_.end() ? 0 : prefix_key(n.tenant, parent->second.chain), n.tokens});
}

bool prefix_index::make_room(page_pool& pool, std::uint32_t count) {
  if (pool.free_count() + pool.spare_count() < count) return false;
  std::uint64_t at = 0;
  while (pool.free_count() < count) {
    const auto next = by_use_.upper_bound(at);
    REDLINE_ASSERT(next != by_use_.end(), "spare pages are in the index");
    at = next->first;
    if (pool.references(nodes_.at(next->second).page) == 1) erase(pool, next->second);
  }
  return true;
}

void prefix_index::clear(page_pool& pool) {
  for (const auto& [id, n] : nodes_) pool.give_up(n.page);
  if (notes_changes_ && !nodes_.empty()) changes_.push_back({.what = prefix_change::kind::cleared});
  nodes_.clear();
  by_hash_.clear();
  by_use_.clear();
}

std::vector<std::uint64_t> prefix_index::recent_blocks(std::size_t max) const {
  std::vector<std::uint64_t> keys;
  std::size_t left = max * (prefix_block_tokens / page_tokens);
  for (auto at = by_use_.rbegin(); at != by_use_.rend() && left > 0; ++at, --left) {
    const node& n = nodes_.at(at->second);
    if (n.depth * page_tokens % prefix_block_tokens == 0) keys.push_back(prefix_key(n.tenant, n.chain));
  }
  return keys;
}

void prefix_index::check_integrity(const page_pool& pool) const {
  REDLINE_ASSERT(by_hash_.size() == nodes_.size() && by_use_.size() == nodes_.size(), "every page is in both indexes");
  REDLINE_ASSERT(pool.kept_count() == nodes_.size(), "the pool keeps exactly the pages of the index");
  for (const auto& [id, n] : nodes_) check(pool, id);
}

void prefix_index::check_some(const page_pool& pool, std::size_t count, check_progress& progress) const {
  progress.looked_at = 0;
  auto at = by_use_.upper_bound(progress.used);
  for (; at != by_use_.end() && progress.looked_at < count; ++at) {
    check(pool, at->second);
    progress.looked_at += 1 + nodes_.at(at->second).children.size();
    progress.used = at->first;
  }
  if (at == by_use_.end()) progress.used = 0;
}

void prefix_index::check(const page_pool& pool, node_id id) const {
  const node& n = nodes_.at(id);
  REDLINE_ASSERT(pool.is_kept(n.page), "known pages are kept");
  for (const node_id child : n.children) {
    REDLINE_ASSERT(nodes_.at(child).parent == id && nodes_.at(child).used < n.used,
                   "a child knows its parent and was used before it");
  }
}

}  // namespace redline::kv
