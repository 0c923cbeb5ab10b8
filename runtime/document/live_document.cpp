#include "runtime/document/live_document.hpp"

#include <utility>

namespace redline::text {

result<live_document> live_document::make(std::shared_ptr<const tokenizer> tokenizer, std::string text,
                                          std::int64_t version, std::size_t bytes_max) {
  REDLINE_TRY_ASSIGN(auto document, text_document::make(std::move(text), bytes_max));
  document_tokens tokens(std::move(tokenizer), document.text());
  return live_document(std::move(document), std::move(tokens), version);
}

result<live_document::change> live_document::apply(std::int64_t base, std::int64_t next,
                                                   std::span<const text_edit> edits, position_encoding units) {
  if (base != version_ || next <= base) {
    return failure{errc::version_conflict, "wanted an edit of version " + std::to_string(version_) +
                                               " that makes a later one, found one of version " + std::to_string(base) +
                                               " that makes version " + std::to_string(next)};
  }
  live_document changed = *this;
  change done;
  for (std::size_t i = 0; i < edits.size(); ++i) {
    const auto range = changed.document_.replace(edits[i], units);
    if (!range) return failure{range.error().code, "edit " + std::to_string(i) + ": " + range.error().context};
    auto splice =
        changed.tokens_.replace(changed.text(), range->begin, range->end - range->begin, edits[i].text.size());
    if (!splice.empty()) done.splices.push_back(std::move(splice));
    done.end = range->begin + edits[i].text.size();
  }
  changed.version_ = next;
  *this = std::move(changed);
  return done;
}

}  // namespace redline::text
