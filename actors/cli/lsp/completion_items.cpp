#include "actors/cli/lsp/completion_items.hpp"

#include <algorithm>
#include <string>

#include "runtime/base/utf8.hpp"

namespace redline::actors::cli::lsp {
namespace {

constexpr std::size_t word_bytes_max = 100;
constexpr int kind_snippet = 15;  // CompletionItemKind

/// True for letters, digits, underscores and all non-ASCII bytes.
bool is_of_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || (c & 0x80) != 0;
}

std::size_t word_begin(std::string_view text, std::size_t byte) {
  std::size_t at = byte;
  while (at > 0 && byte - at < word_bytes_max && is_of_word(text[at - 1])) --at;
  while (at < byte && (text[at] & 0xC0) == 0x80) ++at;
  return at;
}

std::string label_of(std::string_view line) {
  const auto begin = line.find_first_not_of(" \t");
  line.remove_prefix(std::min(begin, line.size()));
  if (line.size() <= label_bytes_max) return std::string(line);
  return std::string(line.substr(0, utf8::valid_prefix_bytes(line.substr(0, label_bytes_max)))) + "\u2026";
}

}  // namespace

json inline_items(text::text_position at, std::string_view written) {
  json items = json::array();
  if (!is_whitespace(written)) items.push_back({{"insertText", written}, {"range", to_json({at, at})}});
  return {{"items", std::move(items)}};
}

json empty_list() { return {{"isIncomplete", true}, {"items", json::array()}}; }

json completion_list(const text::text_document& in, std::size_t byte, text::position_encoding units,
                     std::string_view written) {
  json list = empty_list();
  if (is_whitespace(written)) return list;
  const std::size_t begin = word_begin(in.text(), byte);
  const std::string word = in.text().substr(begin, byte - begin);
  const json range = to_json({in.position_of(begin, units), in.position_of(byte, units)});
  const auto add = [&](std::string_view text, const std::string& label) {
    const std::string whole = word + std::string(text);
    list["items"].push_back({{"label", label},
                             {"kind", kind_snippet},
                             {"detail", "Redline"},
                             {"sortText", std::to_string(list["items"].size())},
                             {"filterText", whole},
                             {"insertTextFormat", 1},
                             {"textEdit", {{"range", range}, {"newText", whole}}}});
  };
  const std::string_view first = written.substr(0, written.find_first_of("\r\n"));
  if (!is_whitespace(first)) add(first, label_of(word + std::string(first)));
  if (first.size() < written.size()) {
    const auto lines = static_cast<std::size_t>(std::count(written.begin(), written.end(), '\n')) + 1;
    std::string_view shown = written;
    shown.remove_prefix(std::min(shown.find_first_not_of(" \t\r\n"), shown.size()));
    shown = shown.substr(0, shown.find_first_of("\r\n"));
    add(written,
        label_of(is_whitespace(first) ? shown : word + std::string(first)) + " (" + std::to_string(lines) + " lines)");
  }
  return list;
}

}  // namespace redline::actors::cli::lsp
