#pragma once

#include <cstddef>
#include <string_view>

#include "actors/cli/lsp/rpc_message.hpp"
#include "runtime/text/text_document.hpp"

namespace redline::actors::cli::lsp {

/// The bytes that an editor shows of a label.
inline constexpr std::size_t label_bytes_max = 80;

inline bool is_whitespace(std::string_view text) { return text.find_first_not_of(" \t\r\n") == std::string_view::npos; }

/// The answer to textDocument/inlineCompletion: a model's text at a position. An empty text gives no items.
json inline_items(text::text_position at, std::string_view written);

/// The answer to textDocument/completion. Editors compare items with the word before the cursor, so an item begins with
/// that word. A text of several lines gives two items: its first line, which every editor can insert, and all of it.
json completion_list(const text::text_document& in, std::size_t byte, text::position_encoding units,
                     std::string_view written);
/// No items for now; the editor may ask again.
json empty_list();

}  // namespace redline::actors::cli::lsp
