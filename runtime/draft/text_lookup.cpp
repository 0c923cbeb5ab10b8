#include "runtime/draft/text_lookup.hpp"

#include <algorithm>
#include <bit>

#include "runtime/base/pause_point.hpp"

namespace redline::draft {

text_lookup::text_lookup(const std::vector<std::string>& texts, std::size_t bytes_max, const name_indices& names) {
  std::size_t bytes = 0;
  std::size_t first = texts.size();
  while (first > 0 && bytes < bytes_max) bytes += texts[--first].size() + 1;
  all_.reserve(std::min(bytes, bytes_max) + 1);
  all_ += '\0';  // no text begins at position 0, which means none
  is_end_.push_back(true);
  std::vector<std::uint32_t> begins(texts.size());
  for (std::size_t i = first; i < texts.size(); ++i) {
    const std::size_t cut = i == first && bytes > bytes_max ? std::min(bytes - bytes_max, texts[i].size()) : 0;
    begins[i] = last_begin_ = static_cast<std::uint32_t>(all_.size());
    all_.append(texts[i], cut);
    all_ += '\0';
    is_end_.resize(all_.size());
    is_end_.back() = true;
  }
  for (const auto& [name, index] : names) {
    if (begins[index] != 0) named_.emplace(name, begins[index]);
  }
  last_.assign(std::bit_ceil(all_.size() + 1), 0);
  before_.assign(all_.size() + 1, 0);
  for (std::size_t end = gram_bytes; end < all_.size(); ++end) {
    if (end % 4096 == 0) pause_point();
    auto& last = last_[slot_of(std::string_view(all_).substr(end - gram_bytes, gram_bytes))];
    before_[end] = last;
    last = static_cast<std::uint32_t>(end);
  }
}

std::size_t text_lookup::slot_of(std::string_view gram) const {
  std::uint64_t hash = 0;
  for (const char c : gram) hash = (hash ^ static_cast<unsigned char>(c)) * 0x9E3779B97F4A7C15u;
  return (hash >> 20) & (last_.size() - 1);
}

std::uint32_t text_lookup::agreement(std::uint32_t place, std::string_view tail) const {
  const std::size_t most = std::min<std::size_t>({matched_max, place, tail.size()});
  std::uint32_t length = 0;
  while (length < most && all_[place - 1 - length] == tail[tail.size() - 1 - length] && !is_end_[place - 1 - length])
    ++length;
  return length;
}

std::optional<text_lookup::finding> text_lookup::find(std::string_view tail, std::uint32_t near) const {
  if (tail.size() < gram_bytes || all_.size() <= gram_bytes) return std::nullopt;
  const auto distance = [near](std::uint32_t place) {
    return place >= near ? std::uint64_t{place - near} : (std::uint64_t{1} << 32) + (near - place);
  };
  finding best;
  // The position where the copying continues is the likeliest, however many later ones there are.
  if (near > 0 && near < all_.size()) best = {near, agreement(near, tail)};
  auto place = last_[slot_of(tail.substr(tail.size() - gram_bytes))];
  for (std::size_t n = 0; place != 0 && n < occurrences_max; ++n, place = before_[place]) {
    const auto found = agreement(place, tail);
    if (found > best.matched || (found == best.matched && distance(place) < distance(best.place)))
      best = {place, found};
  }
  if (best.matched < gram_bytes) return std::nullopt;
  return best;
}

std::optional<text_lookup::finding> text_lookup::find_after(std::string_view tail, std::uint32_t near) const {
  if (tail.size() < resync_bytes || near >= all_.size()) return std::nullopt;
  const auto last = tail.substr(tail.size() - resync_bytes);
  const auto end = std::min<std::size_t>(all_.size(), near + resync_reach);
  const auto at = std::string_view(all_).substr(0, end).find(last, near);
  if (at == std::string_view::npos) return std::nullopt;
  const auto place = static_cast<std::uint32_t>(at + resync_bytes);
  return finding{place, agreement(place, tail)};
}

std::string_view text_lookup::from(std::uint32_t place, std::size_t bytes_max) const {
  std::size_t end = std::min<std::size_t>(place, all_.size());
  const std::size_t most = std::min(all_.size(), end + bytes_max);
  const std::size_t begin = end;
  while (end < most && !is_end_[end]) ++end;
  return std::string_view(all_).substr(begin, end - begin);
}

std::uint32_t text_lookup::line_before(std::uint32_t place) const {
  const std::uint32_t most = std::min<std::uint32_t>(place, resync_reach);
  for (std::uint32_t n = 0; n < most && !is_end_[place - 1]; ++n) {
    if (all_[--place] == '\n') break;
  }
  return place;
}

std::optional<std::uint32_t> text_lookup::begin_of(std::string_view name) const {
  const auto found = named_.find(name);
  return found == named_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace redline::draft
