#pragma once

#include <cstdint>
#include <deque>
#include <unordered_set>
#include <vector>

namespace redline::kv {

/// What a worker says of the beginnings that it keeps: all of them, or what has changed since a revision.
struct kept_news {
  std::uint64_t revision = 0;
  bool is_all = false;                 // `added` is everything
  std::vector<std::uint64_t> added;    // see prefix_key
  std::vector<std::uint64_t> dropped;  // none is in `added`
  bool operator==(const kept_news&) const = default;
};

/// A set of beginnings with the changes of late, for listeners that have heard it before.
class kept_list {
 public:
  /// first: a number that no other list has, so that none is taken for another one's next.
  explicit kept_list(std::uint64_t first) : revision_(first) {}

  void update(const std::vector<std::uint64_t>& keys);
  /// What somebody lacks who knows this revision; everything, when that is unknown or longer ago.
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
