#include "runtime/text/special_splitter.hpp"

#include <algorithm>
#include <cctype>
#include <string>
#include <utility>

#include "runtime/base/pause_point.hpp"

namespace redline::text {
namespace {

using fragment = special_splitter::fragment;

bool is_phi3(const vocabulary& vocab) {
  std::string name = vocab.model_name();
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  return name.find("phi-3") != std::string::npos || name.find("phi3") != std::string::npos;
}

bool is_space(char byte) { return byte == ' ' || (byte >= '\t' && byte <= '\r'); }

}  // namespace

special_splitter::special_splitter(const vocabulary& vocab) : trie_(1) {
  const bool phi3 = is_phi3(vocab);
  for (token id = 0; vocab.contains(id); ++id) {
    const token_type type = vocab.type(id);
    const std::string_view text = vocab.text(id);
    const bool only_when_parsed = type == token_type::control || type == token_type::unknown;
    if (text.empty() || (!only_when_parsed && type != token_type::user_defined)) continue;
    const bool keeps_space = text == "<unk>" || text == "<s>" || text == "<|endoftext|>";
    candidates_.push_back({id, text, only_when_parsed, phi3 && !keeps_space});
  }
  std::stable_sort(candidates_.begin(), candidates_.end(),
                   [](const auto& a, const auto& b) { return a.text.size() > b.text.size(); });
  for (std::size_t i = 0; i < candidates_.size(); ++i) insert(i);
}

void special_splitter::insert(std::size_t index) {
  std::uint32_t at = 0;
  for (const char byte : candidates_[index].text) {
    const node* known = child(trie_[at], byte);
    if (known != nullptr) {
      at = static_cast<std::uint32_t>(known - trie_.data());
      continue;
    }
    const auto fresh = static_cast<std::uint32_t>(trie_.size());
    trie_[at].next.emplace_back(byte, fresh);
    trie_.emplace_back();
    at = fresh;
  }
  if (!trie_[at].candidate) trie_[at].candidate = index;
}

const special_splitter::node* special_splitter::child(const node& from, char byte) const {
  for (const auto& [label, index] : from.next) {
    if (label == byte) return &trie_[index];
  }
  return nullptr;
}

std::vector<special_splitter::occurrence> special_splitter::occurrences(std::string_view text,
                                                                        bool parse_special) const {
  std::vector<occurrence> out;
  for (std::size_t start = 0; start < text.size(); ++start) {
    pause_point();
    const node* at = &trie_.front();
    for (std::size_t i = start; i < text.size() && (at = child(*at, text[i])) != nullptr; ++i) {
      if (!at->candidate || (candidates_[*at->candidate].only_when_parsed && !parse_special)) continue;
      out.push_back({start, *at->candidate});
    }
  }
  return out;
}

std::vector<std::size_t> special_splitter::find_parsed_only(std::string_view text) const {
  std::vector<std::size_t> out;
  for (std::size_t start = 0; start < text.size(); ++start) {
    const node* at = &trie_.front();
    for (std::size_t i = start; i < text.size() && (at = child(*at, text[i])) != nullptr; ++i) {
      if (!at->candidate || !candidates_[*at->candidate].only_when_parsed) continue;
      out.push_back(start);
      break;
    }
  }
  return out;
}

bool special_splitter::swallows_space(bool parse_special) const {
  return std::any_of(candidates_.begin(), candidates_.end(),
                     [=](const candidate& c) { return c.swallows_space && (parse_special || !c.only_when_parsed); });
}

std::vector<std::string_view> special_splitter::always_matched() const {
  std::vector<std::string_view> texts;
  for (const candidate& c : candidates_) {
    if (!c.only_when_parsed) texts.push_back(c.text);
  }
  return texts;
}

// Takes candidates longest first, each from left to right. A span that is already taken belongs to a token at least as
// long, so an overlap shows at the first or the last byte.
std::vector<fragment> special_splitter::split(std::string_view text, bool parse_special) const {
  std::vector<fragment> out;
  std::vector<occurrence> found = occurrences(text, parse_special);
  std::stable_sort(found.begin(), found.end(),
                   [](const occurrence& a, const occurrence& b) { return a.candidate < b.candidate; });
  std::vector<bool> taken(found.empty() ? 0 : text.size(), false);
  std::erase_if(found, [&](occurrence& o) {
    pause_point();
    const candidate& token = candidates_[o.candidate];
    std::size_t end = o.start + token.text.size();
    if (taken[o.start] || taken[end - 1]) return true;
    while (token.swallows_space && end < text.size() && !taken[end] && is_space(text[end])) ++end;
    std::fill(taken.begin() + static_cast<std::ptrdiff_t>(o.start), taken.begin() + static_cast<std::ptrdiff_t>(end),
              true);
    o.end = end;
    return false;
  });
  std::sort(found.begin(), found.end(), [](const occurrence& a, const occurrence& b) { return a.start < b.start; });
  std::size_t done = 0;
  for (const occurrence& o : found) {
    if (done < o.start) out.push_back({text.substr(done, o.start - done), std::nullopt});
    out.push_back({{}, candidates_[o.candidate].id});
    done = o.end;
  }
  if (done < text.size()) out.push_back({text.substr(done), std::nullopt});
  return out;
}

}  // namespace redline::text
