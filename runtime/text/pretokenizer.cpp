#include "runtime/text/pretokenizer.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <limits>
#include <new>
#include <span>
#include <string>
#include <utility>

#include "runtime/base/assert.hpp"
#include "runtime/base/utf8.hpp"
#include "runtime/text/pretokenizer_table.hpp"

namespace redline::text {
namespace {

template<auto release>
struct releases {
  void operator()(auto* held) const { release(held); }
};

}  // namespace

/// One compiled expression. Texts are validated beforehand, so that PCRE2 need not validate them at every match, which
/// would make long texts quadratic.
class pretokenizer::pattern {
 public:
  explicit pattern(std::string_view expression) {
    int error = 0;
    PCRE2_SIZE where = 0;
    code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(expression.data()), expression.size(),
                              PCRE2_UTF | PCRE2_UCP | PCRE2_NO_UTF_CHECK, &error, &where, nullptr));
    REDLINE_ASSERT(code_ != nullptr, "a pre-tokenizer's expression must compile");
    // If the system forbids new code at run time, the interpreter is used.
    pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE);
    // The expressions take time linear in a span of whitespace or letters, whose length the client chooses: valid texts
    // would reach the default limits.
    limits_.reset(pcre2_match_context_create(nullptr));
    if (limits_ == nullptr) throw std::bad_alloc();
    pcre2_set_match_limit(limits_.get(), std::numeric_limits<std::uint32_t>::max());
    pcre2_set_depth_limit(limits_.get(), std::numeric_limits<std::uint32_t>::max());
    pcre2_set_heap_limit(limits_.get(), std::numeric_limits<std::uint32_t>::max());
  }

  /// Appends, for each of `texts`, the matches in it and the text between them.
  void split(std::span<const std::string_view> texts, std::vector<std::string_view>& pieces) const {
    const std::unique_ptr<pcre2_match_data, releases<pcre2_match_data_free>> match(pcre2_match_data_create(1, nullptr));
    if (match == nullptr) throw std::bad_alloc();
    for (const std::string_view text : texts) split_one(text, match.get(), pieces);
  }

 private:
  void split_one(std::string_view text, pcre2_match_data* match, std::vector<std::string_view>& pieces) const {
    std::size_t done = 0;
    while (done < text.size() && find(text, done, match)) {
      const PCRE2_SIZE* found = pcre2_get_ovector_pointer(match);
      REDLINE_ASSERT(found[0] >= done && found[1] > found[0], "a pre-tokenizer's expression matches something");
      if (found[0] > done) pieces.push_back(text.substr(done, found[0] - done));
      pieces.push_back(text.substr(found[0], found[1] - found[0]));
      done = found[1];
    }
    if (done < text.size()) pieces.push_back(text.substr(done));
  }

  bool find(std::string_view text, std::size_t from, pcre2_match_data* match) const {
    const auto run = [&](std::uint32_t options) {
      return pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                         PCRE2_NO_UTF_CHECK | options, match, limits_.get());
    };
    int found = run(0);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT) found = run(PCRE2_NO_JIT);
    if (found == PCRE2_ERROR_NOMEMORY) throw std::bad_alloc();
    REDLINE_ASSERT(found > 0 || found == PCRE2_ERROR_NOMATCH, "matching checked text cannot fail");
    return found > 0;
  }

  std::unique_ptr<pcre2_code, releases<pcre2_code_free>> code_;
  std::unique_ptr<pcre2_match_context, releases<pcre2_match_context_free>> limits_;
};

result<pretokenizer> pretokenizer::make(std::string_view name) {
  const pretokenizer_kind* kind = find_pretokenizer(name);
  if (kind == nullptr) {
    return failure{errc::unsupported_format, "tokenizer.ggml.pre: expected one of " + known_pretokenizers() +
                                                 ", found '" + std::string(name) + "'"};
  }
  pretokenizer out;
  for (const std::string_view expression : kind->patterns) {
    out.patterns_.push_back(std::make_shared<const pattern>(expression));
  }
  return out;
}

bool pretokenizer::always_cuts(char left, char right) {
  const bool word = (left >= '0' && left <= '9') || (left >= 'A' && left <= 'Z') || (left >= 'a' && left <= 'z');
  return word && (right == ' ' || right == '\t' || right == '\n' || right == '\r');
}

void pretokenizer::split(std::string_view text, std::vector<std::string_view>& pieces) const {
  while (!text.empty()) {
    const std::size_t valid = utf8::valid_prefix_bytes(text);
    if (valid > 0) split_valid(text.substr(0, valid), pieces);
    text.remove_prefix(valid);
    std::size_t invalid = 0;
    while (invalid < text.size()) {
      const utf8::unit unit = utf8::first_unit(text.substr(invalid));
      if (unit.what == utf8::unit::kind::character) break;
      invalid += unit.size_bytes;
    }
    if (invalid > 0) pieces.push_back(text.substr(0, invalid));
    text.remove_prefix(invalid);
  }
}

void pretokenizer::split_valid(std::string_view text, std::vector<std::string_view>& pieces) const {
  std::vector<std::string_view> coarse{text};
  for (std::size_t i = 0; i + 1 < patterns_.size(); ++i) {
    std::vector<std::string_view> fine;
    patterns_[i]->split(coarse, fine);
    coarse = std::move(fine);
  }
  patterns_.back()->split(coarse, pieces);
}

}  // namespace redline::text
