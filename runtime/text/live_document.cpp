#include "runtime/text/live_document.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

namespace redline::text {
namespace {

/// The effect of one or more edits: they changed bytes [begin, end) of the resulting text.
struct span_of_edits {
  std::size_t begin;
  std::size_t end;
  std::ptrdiff_t grown;  // bytes that the text has gained

  span_of_edits(const byte_range& replaced, std::size_t inserted)
      : begin(replaced.begin), end(replaced.begin + inserted), grown(growth(replaced, inserted)) {}
  void add(const byte_range& replaced, std::size_t inserted) {
    begin = std::min(begin, replaced.begin);
    end = std::max(end, replaced.end) + inserted - (replaced.end - replaced.begin);
    grown += growth(replaced, inserted);
  }
  /// The number of bytes that they replaced in the text before them.
  [[nodiscard]] std::size_t removed() const {
    return static_cast<std::size_t>(static_cast<std::ptrdiff_t>(end - begin) - grown);
  }

 private:
  static std::ptrdiff_t growth(const byte_range& replaced, std::size_t inserted) {
    return static_cast<std::ptrdiff_t>(inserted) - static_cast<std::ptrdiff_t>(replaced.end - replaced.begin);
  }
};

}  // namespace

result<live_document> live_document::make(std::shared_ptr<const tokenizer> tokenizer, std::string text,
                                          std::int64_t version, std::size_t bytes_max) {
  REDLINE_TRY_ASSIGN(auto document, text_document::make(std::move(text), bytes_max));
  document_tokens tokens(std::move(tokenizer), document.text());
  return live_document(std::move(document), std::move(tokens), version);
}

result<live_document::change> live_document::apply(std::int64_t base, std::int64_t next,
                                                   std::span<const text_edit> edits, position_encoding units) {
  if (base != version_ || next <= base) {
    return failure{errc::version_conflict, "expected an edit of version " + std::to_string(version_) +
                                               " that makes a later version, found one of version " +
                                               std::to_string(base) + " that makes version " + std::to_string(next)};
  }
  live_document changed = *this;
  change done;
  const auto follow = [&](const span_of_edits& of) {
    auto splice = changed.tokens_.replace(changed.text(), of.begin, of.removed(), of.end - of.begin);
    if (!splice.empty()) done.splices.push_back(std::move(splice));
  };
  // Edits in large chunks would mostly encode the same text again. Once as many bytes as the text has were encoded, the
  // remaining edits are processed together.
  const std::size_t bytes_max = text().size();
  std::optional<span_of_edits> rest;
  for (std::size_t i = 0; i < edits.size(); ++i) {
    const auto range = changed.document_.replace(edits[i], units);
    if (!range) return failure{range.error().code, "edit " + std::to_string(i) + ": " + range.error().context};
    const std::size_t inserted = edits[i].text.size();
    if (rest) {
      rest->add(*range, inserted);
    } else if (changed.tokens_.encoded_bytes() - tokens_.encoded_bytes() > bytes_max) {
      rest.emplace(*range, inserted);
    } else {
      follow({*range, inserted});
    }
    done.end = range->begin + inserted;
  }
  if (rest) follow(*rest);
  changed.version_ = next;
  *this = std::move(changed);
  return done;
}

}  // namespace redline::text
