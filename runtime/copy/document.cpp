#include "runtime/copy/document.hpp"

#include <algorithm>

#include "runtime/base/assert.hpp"
#include "runtime/text/line_diff.hpp"

namespace redline::copy {

document::document(std::string bytes) : bytes_(std::move(bytes)) {
  REDLINE_ASSERT(bytes_.size() < (std::uint64_t{1} << 32), "a document has less than 4 GiB");
  std::uint32_t end = 0;
  for (const auto line : text::split_lines(bytes_)) {
    end += static_cast<std::uint32_t>(line.size());
    line_ends_.push_back(end);
  }
}

document::document(std::string bytes, std::vector<std::uint32_t> token_ends) : document(std::move(bytes)) {
  token_ends_ = std::move(token_ends);
  REDLINE_ASSERT((token_ends_.empty() ? 0 : token_ends_.back()) == bytes_.size(), "the tokens make up the document");
  REDLINE_ASSERT(std::is_sorted(token_ends_.begin(), token_ends_.end()), "token ends are ascending");
}

std::string_view document::slice(unit of, std::uint32_t first, std::uint32_t last) const {
  const auto& ends = ends_of(of);
  REDLINE_ASSERT(first >= 1 && first <= last && last <= ends.size(), "the span is within the document");
  const std::uint32_t begin = begin_of(of, first);
  return std::string_view(bytes_).substr(begin, ends[last - 1] - begin);
}

std::uint32_t document::count_whole(unit of, std::uint32_t first, std::size_t bytes) const {
  const auto& ends = ends_of(of);
  REDLINE_ASSERT(first >= 1 && first <= ends.size(), "the unit is within the document");
  const auto from = ends.begin() + (first - 1);
  return static_cast<std::uint32_t>(std::upper_bound(from, ends.end(), begin_of(of, first) + bytes) - from);
}

}  // namespace redline::copy
