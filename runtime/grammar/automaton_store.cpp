#include "runtime/grammar/automaton_store.hpp"

#include <algorithm>
#include <functional>
#include <string_view>

namespace redline::grammar {
namespace {

std::size_t digest_of(const constraint& c) { return std::hash<std::string_view>()(c.text); }

}  // namespace

std::shared_ptr<const byte_automaton> automaton_store::find(const constraint& c) {
  const std::size_t digest = digest_of(c);
  const std::scoped_lock lock(mutex_);
  return find_locked(c, digest);
}

result<std::shared_ptr<const byte_automaton>> automaton_store::get(const constraint& c) {
  const std::size_t digest = digest_of(c);
  {
    const std::scoped_lock lock(mutex_);
    if (auto known = find_locked(c, digest)) return known;
  }
  // Two threads may compile the same grammar. Neither waits for the other, since a pool's jobs share threads.
  REDLINE_TRY_ASSIGN(auto made, compile_automaton(c));
  const std::scoped_lock lock(mutex_);
  if (auto known = find_locked(c, digest)) return known;
  entry& one = entries_.emplace_back();
  one.key = c;
  one.key.state.clear();
  one.digest = digest;
  one.bytes = made->size_bytes() + c.text.size();
  one.known = one.owned = made;
  one.used = ++clock_;
  make_room();
  return made;
}

std::shared_ptr<const byte_automaton> automaton_store::find_locked(const constraint& c, std::size_t digest) {
  const auto at = std::ranges::find_if(
      entries_, [&](const entry& e) { return e.digest == digest && !e.known.expired() && e.key.same_automaton(c); });
  if (at == entries_.end()) return nullptr;
  at->used = ++clock_;
  return at->known.lock();
}

/// Gives up the automata whose last use is longest ago, all but the last one if need be.
void automaton_store::make_room() {
  std::size_t count = 0, bytes = 0;
  for (const entry& e : entries_) {
    if (!e.owned) continue;
    ++count;
    bytes += e.bytes;
  }
  while (count > 1 && (count > owned_max || bytes > bytes_max)) {
    entry* oldest = nullptr;
    for (entry& e : entries_) {
      if (e.owned && (oldest == nullptr || e.used < oldest->used)) oldest = &e;
    }
    --count;
    bytes -= oldest->bytes;
    oldest->owned.reset();
  }
  std::erase_if(entries_, [](const entry& e) { return e.known.expired(); });
}

}  // namespace redline::grammar
