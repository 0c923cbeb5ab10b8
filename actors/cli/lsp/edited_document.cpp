#include "actors/cli/lsp/edited_document.hpp"

#include <algorithm>
#include <utility>

namespace redline::actors::cli::lsp {
namespace {

constexpr std::size_t binary_bytes_looked_at = 8192;  // as in other tools
constexpr std::size_t name_bytes_max = 100;

}  // namespace

edited_document::edited_document(std::string text) { set_whole(std::move(text)); }

void edited_document::set_whole(std::string text) {
  document_.reset();
  complaint_.clear();
  if (text.substr(0, binary_bytes_looked_at).find('\0') != std::string::npos) {
    complaint_ = "contains a zero byte, so it is not text";
    return;
  }
  auto made = text::text_document::make(std::move(text), bytes_max);
  if (made)
    document_ = std::move(*made);
  else
    complaint_ = made.error().context;
}

void edited_document::change(const std::optional<text::position_range>& where, std::string text,
                             text::position_encoding units) {
  ++revision_;
  if (!where) {
    set_whole(std::move(text));
    unsent_whole_ = true;
  } else if (document_) {
    text::byte_range range{document_->offset_near(where->begin, units), document_->offset_near(where->end, units)};
    if (range.begin > range.end) std::swap(range.begin, range.end);
    if (const auto done = document_->replace({range, text}, units); !done) {
      complaint_ = done.error().context;
      document_.reset();
    }
    unsent_bytes_ += text.size();
    if (!unsent_whole_) unsent_.push_back({range, std::move(text)});
  }
  unsent_whole_ = unsent_whole_ || unsent_.size() > unsent_edits_max || unsent_bytes_ > unsent_bytes_max;
  if (unsent_whole_) unsent_.clear();
}

void edited_document::lose(std::string why) {
  ++revision_;
  document_.reset();
  complaint_ = std::move(why);
}

void edited_document::mark_sent() {
  sent_ = revision_;
  unsent_.clear();
  unsent_bytes_ = 0;
  unsent_whole_ = false;
}

change_set edited_document::take_unsent() {
  change_set out{.base = sent_, .next = revision_, .edits = {}};
  if (unsent_whole_ && document_)
    out.edits.push_back({std::nullopt, document_->text()});
  else
    out.edits = std::move(unsent_);
  mark_sent();
  return out;
}

std::string session_path(std::string_view uri) {
  uri = uri.substr(0, uri.find_first_of("?#"));
  while (uri.ends_with('/')) uri.remove_suffix(1);
  std::string_view name = uri.substr(uri.rfind('/') + 1);
  // Keeps the end of the name, which identifies the language.
  if (name.size() > name_bytes_max) name.remove_prefix(name.size() - name_bytes_max);
  std::string out(name);
  std::replace_if(
      out.begin(), out.end(),
      [](char c) {
        const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        return !is_plain && c != '.' && c != '-' && c != '_';
      },
      '_');
  return out.empty() || out == "." || out == ".." ? "untitled" : out;
}

}  // namespace redline::actors::cli::lsp
