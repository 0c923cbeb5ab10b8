#include "actors/prompts/fill_prompt.hpp"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "runtime/base/hash.hpp"

namespace redline::actors {
namespace {

constexpr std::size_t anchored_bytes_min = 4096;  // less is computed again in no time

/// The text from a line on: among those in its first quarter, the one of the least hash. All of it if there is none.
std::string_view from_anchor(std::string_view text) {
  if (text.size() < anchored_bytes_min) return text;
  std::size_t best = 0;
  std::uint64_t least = ~std::uint64_t{0};
  for (std::size_t at = 0; at < text.size() / 4;) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const auto line = text.substr(at, end - at);
    // Short lines are many, and look alike.
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

bool is_inside_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

/// At most `most` bytes, cut between characters.
std::string_view first_bytes(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && is_inside_character(text[most])) --most;
  return text.substr(0, most);
}

std::string_view last_bytes(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  std::size_t begin = text.size() - most;
  while (begin < text.size() && is_inside_character(text[begin])) ++begin;
  return text.substr(begin);
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
  after = after.first(std::min(after.size(), after_count_max(context_max)));
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
  return gap_filler(tokenizer, task, context_max, std::numeric_limits<std::size_t>::max()).prompt(task.before);
}

gap_filler::gap_filler(const text::tokenizer& tokenizer, const fill_task& task, std::uint32_t context_max,
                       std::size_t piece_bytes_max)
    : tokenizer_(tokenizer),
      task_(task),
      context_max_(context_max),
      piece_bytes_max_(std::max<std::size_t>(1, piece_bytes_max)) {
  const auto read = first_bytes(task.after, bytes_of(context_max / 4));
  after_ = tokenizer.encode(read, {.continues = true});
  if (tokenizer.vocab().fim().file_separator && !task.context.empty()) {
    append_file_header(tokenizer, task.path.empty() ? "file" : task.path, header_);
  }
}

std::size_t gap_filler::bytes_of(std::size_t tokens) const {
  // The last tokens of a cut text differ from those of the whole.
  constexpr std::size_t spare = 64;
  const std::size_t most = std::numeric_limits<std::size_t>::max();
  return piece_bytes_max_ > most / (tokens + spare) ? most : piece_bytes_max_ * (tokens + spare);
}

const std::vector<token>* gap_filler::other(std::size_t number) {
  if (number < others_.size()) return &others_[number];
  const auto& file = task_.context[task_.context.size() - 1 - number];
  if (file.text.size() > bytes_of(context_max_)) return nullptr;
  std::vector<token> one;
  const std::string path = file.path.empty() ? "file" : file.path;
  if (tokenizer_.vocab().fim().file_separator) {
    append_file_header(tokenizer_, path, one);
    append(one, tokenizer_.encode(file.text));
  } else {
    one = tokenizer_.encode("\n--- " + path + " ---\n" + file.text + "\n");
  }
  others_.push_back(std::move(one));
  return &others_.back();
}

std::vector<token> gap_filler::prompt(std::string_view before) {
  const auto& vocab = tokenizer_.vocab();
  const auto& special = vocab.fim();
  const auto read = from_anchor(last_bytes(before, bytes_of(context_max_)));
  const auto own = lay_out_gap(tokenizer_, tokenizer_.encode(read), after_, context_max_);
  std::size_t used = header_.size() + 3;
  std::size_t count = 0;  // number of other files
  for (; count < task_.context.size(); ++count) {
    const auto* one = other(count);
    // Half of the rest is for the answer and for the text to grow.
    if (one == nullptr || 2 * (used + one->size()) + own.size() > context_max_) break;
    used += one->size();
  }
  std::vector<token> out;
  if (vocab.adds_bos() && vocab.bos()) out.push_back(*vocab.bos());
  if (special.repository && special.file_separator && count > 0) {
    out.push_back(*special.repository);
    append(out, tokenizer_.encode("project\n"));
  }
  for (std::size_t i = count; i > 0; --i) append(out, others_[i - 1]);
  if (count > 0) append(out, header_);
  append(out, own);
  return out;
}

}  // namespace redline::actors
