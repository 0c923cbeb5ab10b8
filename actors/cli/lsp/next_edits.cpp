// Proposals for the next edit: asked for in a pause after a change, given up at the next one.
#include <algorithm>
#include <utility>

#include "actors/cli/lsp/completion_items.hpp"
#include "actors/cli/lsp/language_server.hpp"

namespace redline::actors::cli::lsp {
namespace {

// With more changes than these, the oldest are forgotten.
constexpr std::size_t story_bytes_max = 4096;

bool has_one_line(const text::position_range& where) {
  return where.end.line == where.begin.line + 1 && where.begin.character == 0 && where.end.character == 0;
}

}  // namespace

void language_server::drop_next_edit(open_document& d) {
  if (d.next.ticket != 0) desk_.give_up(d.next.ticket);
  answer_empty(d.next.asked);
  d.next = {};
}

void language_server::expect_next_edit(open_document& d) {
  if (d.text.document()->text().size() > next_edit_bytes_max) return;
  d.next.due = how_.now() + next_edit_pause;
}

void language_server::begin_next_edit(open_document& d) {
  d.next.due.reset();
  const auto* now = d.text.document();
  if (now == nullptr || link_ != link::up) return drop_next_edit(d);
  std::string story;
  if (const auto before = text::text_document::make(d.told, edited_document::bytes_max)) {
    story = change_story(d.path, *before, now->text(), story_bytes_max);
  }
  if (story.empty() || story.size() > story_bytes_max / 2) d.told = now->text();
  d.next.ticket = start({.what = task::kind::next_edit, .uri = d.uri},
                        next_edit_call{d.path, now->text(), std::min(d.cursor, now->text().size()), story, units_});
}

void language_server::proposed(open_document& d, const server_reply& reply) {
  d.next.ticket = 0;
  if (reply.what != server_reply::kind::done) return drop_next_edit(d);
  d.next.revision = d.text.revision();
  d.next.edits = reply.edits;
  if (!d.next.asked) return;
  const completion asked = *std::exchange(d.next.asked, std::nullopt);
  answer(asked.id, next_edit_items(d, asked.at));
}

void language_server::complete_by_next_edit(open_document& d, completion asked) {
  answer_empty(d.next.asked);
  if (d.next.due || d.next.ticket != 0)
    d.next.asked = std::move(asked);
  else
    answer(asked.id, next_edit_items(d, asked.at));
}

/// Editors show an inline completion only if it replaces a part of the cursor's line.
json language_server::next_edit_items(const open_document& d, text::text_position at) const {
  const auto* document = d.text.document();
  if (document != nullptr && d.next.revision == d.text.revision()) {
    for (const line_edit& one : d.next.edits) {
      if (one.where.begin.line != at.line || !has_one_line(one.where)) continue;
      const auto end = document->offset_near({at.line + 1, 0}, units_);
      const bool has_end = end > 0 && document->text()[end - 1] == '\n';
      const auto last = document->position_of(has_end ? end - 1 : end, units_);
      std::string text = one.text;
      if (text.ends_with('\n')) text.pop_back();
      if (text.ends_with('\r')) text.pop_back();
      return {{"items", json::array({{{"insertText", std::move(text)}, {"range", to_json({one.where.begin, last})}}})}};
    }
  }
  return inline_items(at, "");
}

void language_server::add_next_edit(const open_document& d, json& actions) const {
  if (!client_takes_actions_ || d.next.edits.empty() || d.next.revision != d.text.revision()) return;
  const auto line = d.next.edits.front().where.begin.line + 1;
  actions.push_back({{"title", "Next edit at line " + std::to_string(line)},
                     {"kind", "refactor.rewrite"},
                     {"isPreferred", true},
                     {"edit", workspace_edit(d, d.next.edits)}});
}

}  // namespace redline::actors::cli::lsp
