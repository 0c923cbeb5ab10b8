#include "actors/editing/fill_prompt.hpp"

#include <algorithm>
#include <string_view>

#include "runtime/base/hash.hpp"

namespace redline::actors {
namespace {

constexpr std::size_t anchored_bytes_min = 4096;  // less is computed anew in no time

/// The line among those that begin in the first quarter of the text whose hash is least; the whole when there is none.
std::string_view from_anchor(std::string_view text) {
  if (text.size() < anchored_bytes_min) return text;
  std::size_t best = 0;
  std::uint64_t least = ~std::uint64_t{0};
  for (std::size_t at = 0; at < text.size() / 4;) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const auto line = text.substr(at, end - at);
    // Lines of a few characters are many, and look alike.
    const bool is_telling = line.find_first_not_of(" \t\r}])") != std::string_view::npos;
    if (const auto hash = fnv1a().add(line).value(); is_telling && hash < least) {
      least = hash;
      best = at;
    }
    at = end + 1;
  }
  return text.substr(best);
}

/// Codestral reads what comes after the gap first, and has no token for the middle.
bool reads_suffix_first(const text::vocabulary& vocab) {
  const auto& special = vocab.fim();
  return special.prefix && special.suffix && !special.middle && vocab.text(*special.prefix) == "[PREFIX]";
}

void append(std::vector<token>& out, std::span<const token> more) { out.insert(out.end(), more.begin(), more.end()); }

}  // namespace

bool can_fill(const text::vocabulary& vocab) { return vocab.fim().complete() || reads_suffix_first(vocab); }

std::size_t first_read(const text::tokenizer& tokenizer, std::span<const token> before, std::size_t most,
                       std::uint32_t context_max) {
  if (before.size() <= most) return 0;
  const std::size_t step = std::max<std::size_t>(1, context_max / 8);
  const std::size_t begin = std::min((before.size() - most + step - 1) / step * step, before.size());
  for (std::size_t i = begin; i < std::min(begin + step, before.size()); ++i) {
    if (tokenizer.piece(before[i - 1]).ends_with('\n')) return i;
  }
  return begin;
}

std::vector<token> lay_out_gap(const text::tokenizer& tokenizer, std::span<const token> before,
                               std::span<const token> after, std::uint32_t context_max) {
  const auto& special = tokenizer.vocab().fim();
  after = after.first(std::min<std::size_t>(after.size(), context_max / 4));
  const std::size_t most = context_max - context_max / 4 - after.size();
  before = before.subspan(first_read(tokenizer, before, most, context_max));
  std::vector<token> out;
  const auto put_after = [&] {
    out.push_back(*special.suffix);
    append(out, after);
  };
  const bool is_turned = reads_suffix_first(tokenizer.vocab());
  if (is_turned) put_after();
  out.push_back(*special.prefix);
  append(out, before);
  if (!is_turned) put_after();
  if (special.middle) out.push_back(*special.middle);
  return out;
}

void append_file_header(const text::tokenizer& tokenizer, std::string_view path, std::vector<token>& out) {
  out.push_back(*tokenizer.vocab().fim().file_separator);
  append(out, tokenizer.encode(std::string(path) + "\n"));
}

std::vector<token> fill_prompt(const text::tokenizer& tokenizer, const fill_task& task, std::uint32_t context_max) {
  const auto& special = tokenizer.vocab().fim();
  const auto own = lay_out_gap(tokenizer, tokenizer.encode(from_anchor(task.before)),
                               tokenizer.encode(task.after, {.continues = true}), context_max);
  std::vector<token> header;
  if (special.file_separator && !task.context.empty()) {
    append_file_header(tokenizer, task.path.empty() ? "file" : task.path, header);
  }
  std::vector<std::vector<token>> others;  // the last one first
  std::size_t used = header.size() + 3;
  for (auto file = task.context.rbegin(); file != task.context.rend(); ++file) {
    std::vector<token> one;
    const std::string path = file->path.empty() ? "file" : file->path;
    if (special.file_separator) {
      append_file_header(tokenizer, path, one);
      append(one, tokenizer.encode(file->text));
    } else {
      one = tokenizer.encode("\n--- " + path + " ---\n" + file->text + "\n");
    }
    // Half of the rest is for the answer and for the text to grow.
    if (2 * (used + one.size()) + own.size() > context_max) break;
    used += one.size();
    others.push_back(std::move(one));
  }
  std::vector<token> out;
  if (tokenizer.vocab().adds_bos() && tokenizer.vocab().bos()) out.push_back(*tokenizer.vocab().bos());
  if (special.repository && special.file_separator && !others.empty()) {
    out.push_back(*special.repository);
    append(out, tokenizer.encode("project\n"));
  }
  for (auto one = others.rbegin(); one != others.rend(); ++one) append(out, *one);
  if (!others.empty()) append(out, header);
  append(out, own);
  return out;
}

}  // namespace redline::actors
