#include "runtime/text/document_tokens.hpp"

#include <algorithm>

#include "runtime/base/assert.hpp"

namespace redline::text {
namespace {

// An edit encodes one or two chunks, about 512 bytes, in microseconds; shorter chunks would only lengthen the list.
constexpr std::size_t chunk_bytes_min = 256;

/// The end of a chunk that begins at `begin`.
std::size_t chunk_end(const tokenizer& tokenizer, std::string_view text, std::size_t begin, std::size_t end) {
  for (std::size_t i = begin + chunk_bytes_min; i < end; ++i) {
    if (tokenizer.cuts_between(text[i - 1], text[i])) return i;
  }
  return end;
}

template<class T>
void replace_range(std::vector<T>& in, std::size_t begin, std::size_t end, std::span<const T> with) {
  const auto at =
      in.erase(in.begin() + static_cast<std::ptrdiff_t>(begin), in.begin() + static_cast<std::ptrdiff_t>(end));
  in.insert(at, with.begin(), with.end());
}

}  // namespace

document_tokens::document_tokens(std::shared_ptr<const tokenizer> tokenizer, std::string_view text)
    : tokenizer_(std::move(tokenizer)), bytes_(text.size()) {
  encode_chunks(text, 0, text.size(), chunks_, tokens_);
}

void document_tokens::encode_chunks(std::string_view text, std::size_t begin, std::size_t end,
                                    std::vector<chunk>& chunks, std::vector<token>& tokens) const {
  while (begin < end) {
    const std::size_t next = chunk_end(*tokenizer_, text, begin, end);
    const auto encoded = tokenizer_->encode(text.substr(begin, next - begin), {.continues = begin > 0});
    tokens.insert(tokens.end(), encoded.begin(), encoded.end());
    chunks.push_back({static_cast<std::uint32_t>(next - begin), static_cast<std::uint32_t>(encoded.size())});
    begin = next;
  }
}

document_tokens::place document_tokens::find_before(std::size_t offset) const {
  place p;
  while (p.chunk + 1 < chunks_.size() && p.byte + chunks_[p.chunk].bytes < offset) {
    p.byte += chunks_[p.chunk].bytes;
    p.token += chunks_[p.chunk].tokens_count;
    ++p.chunk;
  }
  return p;
}

token_splice document_tokens::replace(std::string_view text, std::size_t at, std::size_t removed_bytes,
                                      std::size_t inserted_bytes) {
  REDLINE_ASSERT(at + removed_bytes <= bytes_ && bytes_ - removed_bytes + inserted_bytes == text.size(),
                 "the edit and the text belong together");
  // A cut remains valid while the bytes on its two sides stay: the chunk before it begins before the edit, the one
  // after it begins after at least one byte that the edit left.
  const place first = find_before(at);
  place last = first;
  while (last.chunk < chunks_.size() && (last.chunk == first.chunk || last.byte <= at + removed_bytes)) {
    last.byte += chunks_[last.chunk].bytes;
    last.token += chunks_[last.chunk].tokens_count;
    ++last.chunk;
  }
  std::vector<chunk> chunks;
  std::vector<token> fresh;
  const std::size_t end = last.byte - removed_bytes + inserted_bytes;
  encode_chunks(text, first.byte, end, chunks, fresh);
  encoded_bytes_ += end - first.byte;
  replace_range<chunk>(chunks_, first.chunk, last.chunk, chunks);
  bytes_ = text.size();

  const std::span<const token> old = std::span(tokens_).subspan(first.token, last.token - first.token);
  const std::size_t shorter = std::min(old.size(), fresh.size());
  std::size_t same_front = 0;
  while (same_front < shorter && old[same_front] == fresh[same_front]) ++same_front;
  std::size_t same_back = 0;
  while (same_back < shorter - same_front && old[old.size() - 1 - same_back] == fresh[fresh.size() - 1 - same_back]) {
    ++same_back;
  }
  token_splice splice{.at = static_cast<std::uint32_t>(first.token + same_front),
                      .remove_count = static_cast<std::uint32_t>(old.size() - same_front - same_back)};
  splice.insert.assign(fresh.begin() + static_cast<std::ptrdiff_t>(same_front),
                       fresh.end() - static_cast<std::ptrdiff_t>(same_back));
  replace_range<token>(tokens_, splice.at, splice.at + splice.remove_count, splice.insert);
  return splice;
}

std::vector<token> document_tokens::before(std::string_view text, std::size_t bytes) const {
  const place p = find_before(bytes);
  std::vector<token> out(tokens_.begin(), tokens_.begin() + static_cast<std::ptrdiff_t>(p.token));
  const auto rest = tokenizer_->encode(text.substr(p.byte, bytes - p.byte), {.continues = p.byte > 0});
  out.insert(out.end(), rest.begin(), rest.end());
  return out;
}

std::vector<token> document_tokens::after(std::string_view text, std::size_t bytes) const {
  if (bytes >= text.size()) return {};
  // The chunk that contains the first byte: it begins before the next byte.
  const place p = find_before(bytes + 1);
  const std::size_t end = p.byte + chunks_[p.chunk].bytes;
  std::vector<token> out = tokenizer_->encode(text.substr(bytes, end - bytes));
  out.insert(out.end(), tokens_.begin() + static_cast<std::ptrdiff_t>(p.token + chunks_[p.chunk].tokens_count),
             tokens_.end());
  return out;
}

}  // namespace redline::text
