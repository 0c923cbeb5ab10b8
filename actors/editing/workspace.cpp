#include "actors/editing/workspace.hpp"

#include <algorithm>

#include "actors/prompts/fill_prompt.hpp"
#include "actors/serving/token_log.hpp"

namespace redline::actors {
namespace {

refusal too_large(std::size_t most, const std::string& what) {
  return {.what = refusal::kind::session_full,
          .why = {errc::invalid_argument, "A session may have at most " + std::to_string(most) + " " + what + "."}};
}

text::text_position to_position(const file_place& place) { return {place.line, place.character}; }

text::text_edit to_text_edit(const file_edit& edit) {
  if (!edit.where) return {text::whole_text{}, edit.text};
  const auto& [begin, end] = *edit.where;
  if (begin.is_byte) return {text::byte_range{begin.byte, end.byte}, edit.text};
  return {text::position_range{to_position(begin), to_position(end)}, edit.text};
}

}  // namespace

std::size_t workspace::bytes() const {
  std::size_t sum = 0;
  for (const file& f : files_) sum += f.document.text().size();
  return sum;
}

std::size_t workspace::bytes(const std::string& path) const {
  const auto found = find(path);
  return found ? (*found)->document.text().size() : 0;
}

std::optional<refusal> workspace::claim(const text::live_document* old, const text::live_document* next) {
  const auto held = [](const text::live_document* one) { return one == nullptr ? 0 : one->held_bytes(); };
  std::size_t sum = held(next) - held(old), tokens_count = 0;
  for (const file& f : files_) {
    sum += f.document.held_bytes();
    tokens_count += f.document.tokens().size();
  }
  if (old != nullptr) tokens_count -= old->tokens().size();
  if (next != nullptr) tokens_count += next->tokens().size();
  // What the model has read of them, and as much again while that is healed.
  sum += 2 * sizeof(token) * std::min<std::size_t>(tokens_count, how_.context_max);
  return memory_.resize(sum, how_.limits);
}

outcome<const workspace::file*, refusal> workspace::find(const std::string& path,
                                                         std::optional<std::int64_t> version) const {
  for (const file& f : files_) {
    if (f.path != path) continue;
    if (!version || *version == f.document.version()) return &f;
    return refusal{.field = "version",
                   .why = {errc::version_conflict, "expected version " + std::to_string(f.document.version()) + " of " +
                                                       path + ", found " + std::to_string(*version)}};
  }
  return refusal{.what = refusal::kind::no_such_file,
                 .why = {errc::invalid_argument, "no file '" + path + "' in this session"}};
}

std::optional<refusal> workspace::put(const std::string& path, const std::string& text, std::int64_t version) {
  const auto old = std::find_if(files_.begin(), files_.end(), [&](const file& f) { return f.path == path; });
  const std::size_t old_bytes = old == files_.end() ? 0 : old->document.text().size();
  if (old != files_.end() && version <= old->document.version()) {
    return refusal{.field = "version",
                   .why = {errc::version_conflict, "expected a version of " + path + " after " +
                                                       std::to_string(old->document.version()) + ", found " +
                                                       std::to_string(version)}};
  }
  if (old == files_.end() && files_.size() >= how_.limits.files_max) {
    return too_large(how_.limits.files_max, "files");
  }
  if (bytes() - old_bytes + text.size() > how_.limits.session_bytes_max) {
    return too_large(how_.limits.session_bytes_max, "bytes of text");
  }
  auto made = text::live_document::make(tokenizer_, text, version, how_.limits.file_bytes_max);
  if (!made) return refusal{.field = "text", .why = made.error()};
  if (auto why = claim(old == files_.end() ? nullptr : &old->document, &*made)) return why;
  if (old == files_.end())
    files_.push_back({path, std::move(*made)});
  else
    old->document = std::move(*made);
  cursor_ = {path, text.size()};
  return std::nullopt;
}

std::optional<refusal> workspace::drop(const std::string& path) {
  const auto found = find(path);
  if (!found) return found.error();
  claim(&(*found)->document, nullptr);
  files_.erase(files_.begin() + (*found - files_.data()));
  if (cursor_ && cursor_->path == path) cursor_.reset();
  return std::nullopt;
}

outcome<std::vector<text::token_splice>, refusal> workspace::patch(const patch_file& change) {
  const auto found = find(change.path);
  if (!found) return found.error();
  file& f = files_[static_cast<std::size_t>(*found - files_.data())];
  text::live_document changed = f.document;
  std::vector<text::text_edit> edits;
  for (const auto& e : change.edits) edits.push_back(to_text_edit(e));
  const auto done = changed.apply(change.base, change.next, edits, how_.units);
  if (!done) {
    const bool stale = done.error().code == errc::version_conflict;
    return refusal{.field = stale ? "base_version" : "edits", .why = done.error()};
  }
  if (bytes() - f.document.text().size() + changed.text().size() > how_.limits.session_bytes_max) {
    return too_large(how_.limits.session_bytes_max, "bytes of text");
  }
  std::size_t offset = done->end;
  if (change.cursor) {
    const auto at = offset_of({change.path, changed}, *change.cursor);
    if (!at) return refusal{.field = "cursor", .why = at.error()};
    offset = *at;
  }
  if (auto why = claim(&f.document, &changed)) return std::move(*why);
  f.document = std::move(changed);
  if (change.cursor || !change.edits.empty()) cursor_ = {change.path, offset};
  return done->splices;
}

result<std::size_t> workspace::offset_of(const file& in, const file_place& place) const {
  if (!place.is_byte) return in.document.document().offset_of(to_position(place), how_.units);
  const std::size_t byte = place.byte;
  const std::string& text = in.document.text();
  const bool inside = byte < text.size() && (static_cast<unsigned char>(text[byte]) & 0xC0) == 0x80;
  if (byte <= text.size() && !inside) return byte;
  return failure{errc::invalid_argument, "byte " + std::to_string(byte) +
                                             (inside ? " lies inside a character" : " lies after the end of the text")};
}

workspace::layout workspace::lay_out_at(const file& in, std::size_t offset, completion_mode mode) const {
  const auto& special = tokenizer_->vocab().fim();
  const auto before = in.document.tokens_before(offset);
  const auto after = in.document.tokens_after(offset);
  std::vector<token> own;
  std::size_t read_after = 0;
  if (mode == completion_mode::fim) {
    own = lay_out_gap(*tokenizer_, before, after, how_.context_max);
    read_after = after_count_max(how_.context_max);
  } else {
    // A quarter of the context is for the answer.
    const std::size_t begin =
        first_read(*tokenizer_, before, how_.context_max - how_.context_max / 4, how_.context_max);
    own.assign(before.begin() + static_cast<std::ptrdiff_t>(begin), before.end());
  }

  layout out;
  if (tokenizer_->vocab().adds_bos() && tokenizer_->vocab().bos()) out.prompt.push_back(*tokenizer_->vocab().bos());
  if (files_.size() > 1 && special.file_separator) {
    std::vector<token> header;
    append_file_header(*tokenizer_, in.path, header);
    for (const file& other : files_) {
      if (&other == &in) continue;
      std::vector<token> one;
      append_file_header(*tokenizer_, other.path, one);
      one.insert(one.end(), other.document.tokens().begin(), other.document.tokens().end());
      // Half of the rest is for the answer and for the file to grow; otherwise each line typed would drop a file.
      if (2 * (out.prompt.size() + one.size()) + header.size() + own.size() > how_.context_max) break;
      out.prompt.insert(out.prompt.end(), one.begin(), one.end());
    }
    out.prompt.insert(out.prompt.end(), header.begin(), header.end());
  }
  out.prompt.insert(out.prompt.end(), own.begin(), own.end());
  const auto rest = std::span<const token>(after).subspan(std::min(read_after, after.size()));
  const std::size_t room = how_.context_max - std::min<std::size_t>(out.prompt.size(), how_.context_max);
  const auto behind = rest.first(std::min(rest.size(), room));
  out.behind.assign(behind.begin(), behind.end());
  if (mode == completion_mode::line) out.stops.emplace_back("\n");
  return out;
}

outcome<workspace::layout, refusal> workspace::lay_out(const completion_place& where) const {
  const auto found = find(where.path, where.version);
  if (!found) return found.error();
  const file& f = **found;
  const auto offset = where.place ? offset_of(f, *where.place) : result<std::size_t>(f.document.text().size());
  if (!offset) return refusal{.field = "position", .why = offset.error()};
  const bool has_fim = tokenizer_->vocab().fim().complete();
  const auto mode = where.mode.value_or(has_fim ? completion_mode::fim : completion_mode::line);
  if (mode == completion_mode::fim && !has_fim) {
    return refusal{
        .field = "mode",
        .why = {errc::invalid_argument, "'mode' cannot be fim: the model has no tokens for filling in the middle."}};
  }
  layout out = lay_out_at(f, *offset, mode);
  if (out.prompt.empty()) {
    return refusal{.field = "position",
                   .why = {errc::invalid_argument, "There is no text before the position to continue."}};
  }
  if (out.prompt.size() >= how_.context_max) {
    return refusal{.field = "position",
                   .why = {errc::context_length_exceeded, context_sentence(how_.context_max) +
                                                              " However, the prompt for the position has " +
                                                              std::to_string(out.prompt.size()) + " tokens."}};
  }
  return out;
}

void workspace::note_place(const completion_place& where) {
  const auto found = find(where.path);
  if (!found) return;
  const auto offset =
      where.place ? offset_of(**found, *where.place) : result<std::size_t>((*found)->document.text().size());
  if (offset) cursor_ = {where.path, *offset};
  mode_ = where.mode;
}

std::optional<workspace::layout> workspace::expected() const {
  if (!cursor_) return std::nullopt;
  const file_place place{.is_byte = true, .byte = static_cast<std::uint32_t>(cursor_->offset)};
  auto out = lay_out({.path = cursor_->path, .place = place, .mode = mode_});
  if (!out) return std::nullopt;
  return std::move(*out);
}

}  // namespace redline::actors
