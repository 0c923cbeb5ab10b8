#pragma once

#include <cstdint>
#include <deque>
#include <unordered_set>
#include <vector>

namespace redline::kv {

/// A worker's report of its cached prefixes: all of them, or the changes since a revision.
struct kept_news {
  std::uint64_t revision = 0;
  bool is_all = false;                 // `added` is the complete set
  std::vector<std::uint64_t> added;    // see prefix_key
  std::vector<std::uint64_t> dropped;  // none is in `added`
  bool operator==(const kept_news&) const = default;
};

/// A set of cached prefixes with its recent changes, for listeners that know an earlier revision.
class kept_list {
 public:
  /// first: a number that is unique among lists, so that no list is mistaken for a later state of another.
  explicit kept_list(std::uint64_t first) : revision_(first) {}

  void update(const std::vector<std::uint64_t>& keys);
  /// The changes since this revision; everything if it is unknown or too old.
  [[nodiscard]] kept_news since(std::uint64_t revision) const;

 private:
  struct step {
    std::vector<std::uint64_t> added, dropped;
  };
  std::uint64_t revision_;  // after the last of steps_
  std::deque<step> steps_;
  std::unordered_set<std::uint64_t> keys_;
};

}  // namespace redline::kv
