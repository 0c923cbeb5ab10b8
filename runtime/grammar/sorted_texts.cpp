#include "runtime/grammar/sorted_texts.hpp"

#include <algorithm>
#include <bit>

namespace redline::grammar {

sorted_texts::sorted_texts(std::vector<std::string> texts) : texts_(std::move(texts)) {
  std::sort(texts_.begin(), texts_.end());
  texts_.erase(std::unique(texts_.begin(), texts_.end()), texts_.end());
  leaves_ = std::bit_ceil(count() + 1);
  common_.assign(std::size_t{2} * leaves_, 0);
  for (std::uint32_t i = 1; i < count(); ++i) {
    const std::string &a = texts_[i - 1], &b = texts_[i];
    const auto end = std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first;
    common_[leaves_ + i] = static_cast<std::uint32_t>(end - a.begin());
  }
  for (std::uint32_t n = leaves_; --n > 0;) common_[n] = std::min(common_[2 * n], common_[2 * n + 1]);
}

std::uint32_t sorted_texts::find(std::string_view text) const {
  return static_cast<std::uint32_t>(std::lower_bound(texts_.begin(), texts_.end(), text) - texts_.begin());
}

/// Climbs while a whole subtree agrees, then descends to where it no longer does. The zeros at both ends stop it.
sorted_texts::range sorted_texts::find_alike(std::uint32_t i, std::uint32_t length, step_count& steps) const {
  if (length == 0) return {0, count()};
  std::uint32_t n = leaves_ + i;
  for (; common_[n] >= length; --n, steps.add()) n >>= std::countr_zero(n);
  for (; n < leaves_; n -= common_[n] >= length ? 1 : 0, steps.add()) n = 2 * n + 1;
  const std::uint32_t begin = n - leaves_;
  n = leaves_ + i + 1;
  for (; common_[n] >= length; ++n, steps.add()) n >>= std::countr_one(n);
  for (; n < leaves_; n += common_[n] >= length ? 1 : 0, steps.add()) n = 2 * n;
  return {begin, n - leaves_};
}

sorted_texts::range sorted_texts::narrow(range alike, std::uint32_t length, std::uint8_t byte,
                                         step_count& steps) const {
  const auto first_from = [&](int wanted) {
    std::uint32_t begin = alike.begin;
    for (std::uint32_t end = alike.end; begin < end; steps.add()) {
      const std::uint32_t middle = begin + (end - begin) / 2;
      const std::string& t = texts_[middle];
      const int next = t.size() > length ? static_cast<std::uint8_t>(t[length]) : -1;  // the end comes before all bytes
      if (next < wanted)
        begin = middle + 1;
      else
        end = middle;
    }
    return begin;
  };
  alike.begin = first_from(byte);
  alike.end = first_from(byte + 1);
  return alike;
}

std::string_view sorted_texts::find_continuation(range alike, std::uint32_t length, std::size_t bytes_max,
                                                 step_count& steps) const {
  steps.add();
  const auto first = std::string_view(texts_[alike.begin]).substr(length, bytes_max);
  if (alike.end - alike.begin == 1) return first;
  const auto last = std::string_view(texts_[alike.end - 1]).substr(length, bytes_max);
  const auto same = std::mismatch(first.begin(), first.end(), last.begin(), last.end()).first - first.begin();
  steps.add(static_cast<std::uint64_t>(same));
  return first.substr(0, static_cast<std::size_t>(same));
}

}  // namespace redline::grammar
