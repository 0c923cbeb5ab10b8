#include "actors/editing/workspace.hpp"

#include <algorithm>

namespace redline::actors {
namespace {

using api::api_error;

api_error too_large(const std::string& what, std::size_t most) {
  return {413, "invalid_request_error", what + " must have at most " + std::to_string(most) + " in a session.",
          "",  "session_limit",         {}};
}

api_error error_in(std::string param, const failure& why) {
  auto error = api::error_of(why);
  error.param = std::move(param);
  return error;
}

}  // namespace

std::size_t workspace::bytes() const {
  std::size_t sum = 0;
  for (const file& f : files_) sum += f.document.text().size();
  return sum;
}

api::answer<const workspace::file*> workspace::find(const std::string& path,
                                                    std::optional<std::int64_t> version) const {
  for (const file& f : files_) {
    if (f.path != path) continue;
    if (!version || *version == f.document.version()) return &f;
    return error_in("version", {errc::version_conflict, "wanted version " + std::to_string(f.document.version()) +
                                                            " of " + path + ", found " + std::to_string(*version)});
  }
  return api::not_found("no file '" + path + "' in this session", "file_not_found");
}

std::optional<api_error> workspace::put(const api::opened_file& given) {
  const auto old = std::find_if(files_.begin(), files_.end(), [&](const file& f) { return f.path == given.path; });
  const std::size_t old_bytes = old == files_.end() ? 0 : old->document.text().size();
  if (old != files_.end() && given.version <= old->document.version()) {
    return error_in("version", {errc::version_conflict, "wanted a version of " + given.path + " after " +
                                                            std::to_string(old->document.version()) + ", found " +
                                                            std::to_string(given.version)});
  }
  if (old == files_.end() && files_.size() >= how_.limits.files_max) {
    return too_large("The files", how_.limits.files_max);
  }
  if (bytes() - old_bytes + given.text.size() > how_.limits.session_bytes_max) {
    return too_large("The files' text", how_.limits.session_bytes_max);
  }
  auto made = text::live_document::make(tokenizer_, given.text, given.version, how_.limits.file_bytes_max);
  if (!made) return error_in("text", made.error());
  if (old == files_.end())
    files_.push_back({given.path, std::move(*made)});
  else
    old->document = std::move(*made);
  cursor_ = {given.path, given.text.size()};
  return std::nullopt;
}

std::optional<api_error> workspace::drop(const std::string& path) {
  const auto found = find(path);
  if (!found) return found.error();
  files_.erase(files_.begin() + (*found - files_.data()));
  if (cursor_ && cursor_->path == path) cursor_.reset();
  return std::nullopt;
}

api::answer<std::vector<text::token_splice>> workspace::patch(const std::string& path,
                                                              const api::patch_request& request) {
  const auto found = find(path);
  if (!found) return found.error();
  file& f = files_[static_cast<std::size_t>(*found - files_.data())];
  text::live_document changed = f.document;
  const auto done = changed.apply(request.base, request.next, request.edits, how_.units);
  if (!done) return error_in(done.error().code == errc::version_conflict ? "base_version" : "edits", done.error());
  if (bytes() - f.document.text().size() + changed.text().size() > how_.limits.session_bytes_max) {
    return too_large("The files' text", how_.limits.session_bytes_max);
  }
  std::size_t offset = done->end;
  if (request.cursor) {
    const auto at = offset_of({path, changed}, *request.cursor);
    if (!at) return error_in("cursor", at.error());
    offset = *at;
  }
  f.document = std::move(changed);
  if (request.cursor || !request.edits.empty()) cursor_ = {path, offset};
  return done->splices;
}

result<std::size_t> workspace::offset_of(const file& in, const api::file_place& place) const {
  if (const auto* position = std::get_if<text::text_position>(&place)) {
    return in.document.document().offset_of(*position, how_.units);
  }
  const std::size_t byte = std::get<std::size_t>(place);
  const std::string& text = in.document.text();
  const bool inside = byte < text.size() && (static_cast<unsigned char>(text[byte]) & 0xC0) == 0x80;
  if (byte <= text.size() && !inside) return byte;
  return failure{
      errc::invalid_argument,
      "byte " + std::to_string(byte) + (inside ? " lies inside a character" : " lies behind the end of the text")};
}

void workspace::append_header(const file& of, std::vector<token>& out) const {
  out.push_back(*tokenizer_->vocab().fim().file_separator);
  const auto path = tokenizer_->encode(of.path + "\n");
  out.insert(out.end(), path.begin(), path.end());
}

/// Where reading begins when no more than `most` of `before` can be read: at a line, and at the same one until an
/// eighth of the context more stands before the cursor, so that a key pressed does not move everything in the cache.
std::size_t workspace::first_read(std::span<const token> before, std::size_t most) const {
  if (before.size() <= most) return 0;
  const std::size_t step = std::max<std::size_t>(1, how_.context_max / 8);
  const std::size_t begin = std::min((before.size() - most + step - 1) / step * step, before.size());
  for (std::size_t i = begin; i < std::min(begin + step, before.size()); ++i) {
    if (tokenizer_->piece(before[i - 1]).ends_with('\n')) return i;
  }
  return begin;
}

workspace::layout workspace::lay_out_at(const file& in, std::size_t offset, api::completion_mode mode) const {
  const auto& special = tokenizer_->vocab().fim();
  const bool fim = mode == api::completion_mode::fim;
  const auto before = in.document.tokens_before(offset);
  auto behind = fim ? in.document.tokens_behind(offset) : std::vector<token>{};
  behind.resize(std::min<std::size_t>(behind.size(), how_.context_max / 4));
  // A quarter of the context is for the answer.
  const std::size_t begin = first_read(before, how_.context_max - how_.context_max / 4 - behind.size());
  std::vector<token> own;
  if (fim) own.push_back(*special.prefix);
  own.insert(own.end(), before.begin() + static_cast<std::ptrdiff_t>(begin), before.end());
  if (fim) {
    own.push_back(*special.suffix);
    own.insert(own.end(), behind.begin(), behind.end());
    own.push_back(*special.middle);
  }

  layout out{.version = in.document.version()};
  if (tokenizer_->vocab().adds_bos() && tokenizer_->vocab().bos()) out.prompt.push_back(*tokenizer_->vocab().bos());
  if (files_.size() > 1 && special.file_separator) {
    std::vector<token> header;
    append_header(in, header);
    for (const file& other : files_) {
      if (&other == &in) continue;
      std::vector<token> one;
      append_header(other, one);
      one.insert(one.end(), other.document.tokens().begin(), other.document.tokens().end());
      // Half of what is left is for the answer and for the file to grow: else each line typed would drop a file.
      if (2 * (out.prompt.size() + one.size()) + header.size() + own.size() > how_.context_max) break;
      out.prompt.insert(out.prompt.end(), one.begin(), one.end());
    }
    out.prompt.insert(out.prompt.end(), header.begin(), header.end());
  }
  out.prompt.insert(out.prompt.end(), own.begin(), own.end());
  if (mode == api::completion_mode::line) out.stops.emplace_back("\n");
  return out;
}

api::answer<workspace::layout> workspace::lay_out(const api::place_request& where) const {
  const auto found = find(where.path, where.version);
  if (!found) return found.error();
  const file& f = **found;
  const auto offset = where.place ? offset_of(f, *where.place) : result<std::size_t>(f.document.text().size());
  if (!offset) return error_in("position", offset.error());
  const bool has_fim = tokenizer_->vocab().fim().complete();
  const auto mode = where.mode.value_or(has_fim ? api::completion_mode::fim : api::completion_mode::line);
  if (mode == api::completion_mode::fim && !has_fim) {
    return api::bad_field("mode", "'mode' cannot be fim: the model has no tokens for filling in the middle.");
  }
  layout out = lay_out_at(f, *offset, mode);
  if (out.prompt.empty()) return api::bad_field("position", "There is nothing before the position to go on from.");
  if (out.prompt.size() >= how_.context_max) {
    return error_in("position", {errc::context_length_exceeded,
                                 "wanted fewer than " + std::to_string(how_.context_max) +
                                     " tokens around the position, found " + std::to_string(out.prompt.size())});
  }
  return out;
}

void workspace::note_place(const api::place_request& where) {
  const auto found = find(where.path);
  if (!found) return;
  const auto offset =
      where.place ? offset_of(**found, *where.place) : result<std::size_t>((*found)->document.text().size());
  if (offset) cursor_ = {where.path, *offset};
  mode_ = where.mode;
}

std::optional<workspace::layout> workspace::expected() const {
  if (!cursor_) return std::nullopt;
  auto out = lay_out({.path = cursor_->path, .place = cursor_->offset, .mode = mode_});
  if (!out) return std::nullopt;
  return std::move(*out);
}

}  // namespace redline::actors
