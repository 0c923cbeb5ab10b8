#include "runtime/formats/elision.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/text/line_diff.hpp"

namespace redline::formats {
namespace {

constexpr std::size_t none = std::string_view::npos;
constexpr std::string_view whitespace = " \t\r\n";

std::string_view without_end(std::string_view line) { return line.substr(0, line.find_last_not_of(whitespace) + 1); }
std::string_view trimmed(std::string_view line) {
  return without_end(line.substr(std::min(line.find_first_not_of(whitespace), line.size())));
}
std::string_view indentation(std::string_view line) {
  return line.substr(0, std::min(line.find_first_not_of(" \t"), line.size()));
}

/// The text of a comment, and whether the line is one.
std::pair<std::string_view, bool> comment_text(std::string_view line) {
  static constexpr std::pair<std::string_view, std::string_view> kinds[] = {
      {"//", ""}, {"{/*", "*/}"}, {"/*", "*/"}, {"<!--", "-->"}, {"\"\"\"", "\"\"\""},
      {"#", ""},  {"--", ""},     {";", ""},    {"%", ""},       {"'", ""}};
  std::string_view text = trimmed(line);
  for (const auto& [open, close] : kinds) {
    if (!text.starts_with(open)) continue;
    text.remove_prefix(open.size());
    if (!close.empty() && text.ends_with(close)) text.remove_suffix(close.size());
    return {trimmed(text), true};
  }
  return {text, false};
}

/// A comment in place of lines that the update leaves out.
bool is_elision(std::string_view line) {
  const auto [text, is_comment] = comment_text(line);
  if (text.find("UNCHANGED CODE") != none) return true;
  constexpr std::string_view dots = "...";
  constexpr std::string_view ellipsis = "\xE2\x80\xA6";
  const auto dots_at_start = text.starts_with(dots) ? dots.size() : text.starts_with(ellipsis) ? ellipsis.size() : 0;
  const auto dots_at_end = text.ends_with(dots) ? dots.size() : text.ends_with(ellipsis) ? ellipsis.size() : 0;
  if (dots_at_start == 0 && dots_at_end == 0) return false;
  if (text.size() == dots_at_start) return true;
  if (dots_at_start != 0 && dots_at_end != 0 && text.size() > dots_at_start + dots_at_end) return true;
  // Outside a comment, "...others" is code.
  if (!is_comment && (dots_at_start == 0 || text[dots_at_start] != ' ')) return false;
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  static constexpr std::string_view words[] = {"existing", "rest of", "unchanged", "remains the same",
                                               "keep",     "other",   "previous",  "same as before"};
  return std::any_of(std::begin(words), std::end(words), [&](auto word) { return lower.find(word) != none; });
}

/// Relace's way to say that a part is deleted. It stands for no line.
bool is_removal(std::string_view line) {
  const auto [text, is_comment] = comment_text(line);
  return is_comment && text.starts_with("remove ");
}

/// Lines such as "}" and "});" are everywhere and tell nothing.
bool can_anchor(std::string_view key) { return key.find_first_not_of("{}[]();, \t") != none; }

/// The lines of the file, by key. Sorted rather than hashed: clients choose the lines, and could choose such that
/// collide.
class line_table {
 public:
  line_table(std::vector<std::string_view> keys, std::uint64_t& lines_read) : keys_(std::move(keys)) {
    std::vector<std::uint32_t> order(keys_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::uint32_t>(i);
    std::sort(order.begin(), order.end(), [&](auto a, auto b) { return ++lines_read, keys_[a] < keys_[b]; });
    std::vector<std::uint32_t> ids(keys_.size());
    for (const std::uint32_t i : order) {
      if (distinct_.empty() || distinct_.back().key != keys_[i]) distinct_.push_back({keys_[i], i, 0});
      ++distinct_.back().count;
      ids[i] = static_cast<std::uint32_t>(distinct_.size() - 1);
    }
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) pairs_.emplace_back(pair_of(ids[i], ids[i + 1]), i);
    std::sort(pairs_.begin(), pairs_.end());
  }

  [[nodiscard]] std::size_t size() const { return keys_.size(); }
  [[nodiscard]] std::string_view key(std::size_t line) const { return keys_[line]; }
  [[nodiscard]] std::optional<std::uint32_t> find(std::string_view key) const {
    const auto at = std::lower_bound(distinct_.begin(), distinct_.end(), key,
                                     [](const entry& e, std::string_view k) { return e.key < k; });
    if (at == distinct_.end() || at->key != key) return std::nullopt;
    return static_cast<std::uint32_t>(at - distinct_.begin());
  }
  /// The only line with this key, or `none`.
  [[nodiscard]] std::size_t only(std::uint32_t id) const {
    return distinct_[id].count == 1 ? distinct_[id].line : none;
  }
  /// The only line with the first key that is followed by one with the second, or `none`.
  [[nodiscard]] std::size_t only(std::uint32_t id, std::uint32_t next) const {
    const std::uint64_t pair = pair_of(id, next);
    const auto at = std::lower_bound(pairs_.begin(), pairs_.end(), std::pair<std::uint64_t, std::size_t>(pair, 0));
    if (at == pairs_.end() || at->first != pair || (at + 1 != pairs_.end() && (at + 1)->first == pair)) return none;
    return at->second;
  }

 private:
  struct entry {
    std::string_view key;
    std::size_t line = 0;
    std::size_t count = 0;
  };
  static std::uint64_t pair_of(std::uint32_t a, std::uint32_t b) { return std::uint64_t{a} << 32 | b; }
  std::vector<std::string_view> keys_;
  std::vector<entry> distinct_;                               // by key; the index is the id
  std::vector<std::pair<std::uint64_t, std::size_t>> pairs_;  // of adjacent ids, and the first line's number
};

/// Lines of the update between elisions.
struct block {
  std::size_t begin = 0;
  std::size_t end = 0;
};

struct cut_update {
  std::vector<std::string_view> lines;  // without elisions
  std::vector<block> blocks;            // none is empty
  bool elided_first = false;            // an elision precedes the first block
  bool elided_last = false;
  bool elided = false;
};

/// A line that the file contains is code, whatever it looks like: `...` is an expression in Python.
cut_update cut(const std::vector<std::string_view>& update, const line_table& file) {
  cut_update out;
  bool open = false;
  for (const auto line : update) {
    const bool is_code = file.find(without_end(line)).has_value();
    if (!is_code && is_removal(line)) continue;
    const bool elision = !is_code && is_elision(line);
    out.elided_last = elision;
    out.elided |= elision;
    if (elision) {
      out.elided_first |= out.lines.empty();
      open = false;
      continue;
    }
    if (!open) out.blocks.push_back({out.lines.size(), out.lines.size()});
    open = true;
    out.lines.push_back(line);
    ++out.blocks.back().end;
  }
  return out;
}

/// Where the update's lines are in the file. `places` is ascending, with `none` for new lines.
class placement {
 public:
  placement(const cut_update& update, const line_table& file, bool ignore_indentation, std::uint64_t& lines_read)
      : places(update.lines.size(), none), file_(file), lines_read_(lines_read) {
    for (const auto line : update.lines) keys_.push_back(ignore_indentation ? trimmed(line) : without_end(line));
    in_order_ = anchor(update.blocks);
  }

  [[nodiscard]] bool in_order() const { return in_order_; }
  [[nodiscard]] bool has_anchors() const {
    return std::any_of(places.begin(), places.end(), [](auto p) { return p != none; });
  }
  [[nodiscard]] std::size_t first_of(const block& b) const {
    for (std::size_t i = b.begin; i < b.end; ++i) {
      if (places[i] != none) return i;
    }
    return none;
  }
  [[nodiscard]] std::size_t last_of(const block& b) const {
    for (std::size_t i = b.end; i-- > b.begin;) {
      if (places[i] != none) return i;
    }
    return none;
  }

  /// Places the lines that repeat the file next to anchors, so that a block's last "}" is not taken for a new one.
  void extend(const std::vector<block>& blocks) {
    std::vector<std::size_t> limits(blocks.size(), file_.size());  // the place of the next block's first anchor
    for (std::size_t b = blocks.size(); b-- > 1;) {
      const std::size_t first = first_of(blocks[b]);
      limits[b - 1] = first == none ? limits[b] : places[first];
    }
    std::size_t from = 0;  // lines before are taken by earlier blocks
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      const std::size_t first = first_of(blocks[b]);
      if (first == none) continue;
      std::size_t place = places[first];
      for (std::size_t i = first; i-- > blocks[b].begin && place > from;) {
        ++lines_read_;
        if (keys_[i] == file_.key(place - 1)) places[i] = --place;
      }
      extend_forward(blocks[b], first, limits[b]);
      from = places[last_of(blocks[b])] + 1;
    }
  }

  std::vector<std::size_t> places;

 private:
  /// Lines that are unique in the file, alone or with a neighbor, in ascending places.
  bool anchor(const std::vector<block>& blocks) {
    std::vector<std::optional<std::uint32_t>> ids;
    for (const auto key : keys_) ids.push_back(file_.find(key));
    std::size_t next = 0;
    std::size_t kept = 0;
    std::size_t dropped = 0;
    for (const block& b : blocks) {
      bool placed = false;
      bool known = false;
      for (std::size_t i = b.begin; i < b.end; ++i) {
        ++lines_read_;
        if (!ids[i] || !can_anchor(keys_[i])) continue;
        std::size_t place = file_.only(*ids[i]);
        if (place == none && i + 1 < b.end && ids[i + 1]) place = file_.only(*ids[i], *ids[i + 1]);
        if (place == none && i > b.begin && ids[i - 1]) {
          place = file_.only(*ids[i - 1], *ids[i]);
          if (place != none) ++place;
        }
        if (place == none) continue;
        known = true;
        if (place < next) {
          ++dropped;
          continue;
        }
        places[i] = place;
        next = place + 1;
        ++kept;
        placed = true;
      }
      if (known && !placed) return false;
    }
    return dropped <= kept;
  }

  void extend_forward(const block& b, std::size_t first, std::size_t limit) {
    std::size_t place = places[first] + 1;
    std::size_t gap_end = limit;
    std::vector<std::size_t> ends(b.end - first, limit);  // the place of the block's next anchor
    for (std::size_t i = b.end; i-- > first;) {
      ends[i - first] = gap_end;
      if (places[i] != none) gap_end = places[i];
    }
    for (std::size_t i = first + 1; i < b.end; ++i) {
      ++lines_read_;
      if (places[i] == none && place < ends[i - first] && keys_[i] == file_.key(place)) places[i] = place;
      if (places[i] != none) place = places[i] + 1;
    }
    if (places[b.end - 1] == none) places[b.end - 1] = closing_line(keys_[b.end - 1], place, limit);
  }

  /// The line that ends the deeper lines from `place` on, if it is this one.
  std::size_t closing_line(std::string_view key, std::size_t place, std::size_t limit) {
    if (key.empty()) return none;
    const std::size_t depth = indentation(key).size();
    for (; place < limit; ++place) {
      ++lines_read_;
      const std::string_view line = file_.key(place);
      if (line == key) return place;
      if (!line.empty() && indentation(line).size() <= depth) return none;
    }
    return none;
  }

  const line_table& file_;
  std::uint64_t& lines_read_;
  std::vector<std::string_view> keys_;
  bool in_order_ = true;
};

/// By how much the update's lines are indented more (`less` false) or less than the file's.
struct shift {
  std::string_view by;
  bool less = false;
};

/// The difference that all placed lines have, or nullopt.
std::optional<shift> shift_of(const cut_update& update, const std::vector<std::size_t>& places,
                              const std::vector<std::string_view>& file) {
  std::optional<shift> common;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (places[i] == none) continue;
    const std::string_view ours = indentation(update.lines[i]);
    const std::string_view theirs = indentation(file[places[i]]);
    const bool less = ours.size() < theirs.size();
    const std::string_view longer = less ? theirs : ours;
    const std::string_view shorter = less ? ours : theirs;
    if (!longer.ends_with(shorter)) return std::nullopt;
    const shift one{longer.substr(0, longer.size() - shorter.size()), less};
    if (common && (common->by != one.by || common->less != one.less)) return std::nullopt;
    common = one;
  }
  return common;
}

/// Joins lines from both texts in the form of the file.
class file_writer {
 public:
  explicit file_writer(const std::vector<std::string_view>& file, const shift& moved) : file_(file), moved_(moved) {
    if (!file.empty() && file.front().ends_with("\r\n")) line_feed_ = "\r\n";
  }
  void add_old(std::size_t begin, std::size_t end) {
    for (; begin < end; ++begin) add(file_[begin]);
  }
  void add_new(std::string_view line) {
    const std::string_view feed = line.ends_with('\n') ? line_feed_ : "";
    if (line.ends_with('\n')) line.remove_suffix(1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    end_line();
    if (moved_.less && !line.empty()) out_ += moved_.by;
    if (!moved_.less && line.starts_with(moved_.by)) line.remove_prefix(moved_.by.size());
    (out_ += line) += feed;
  }
  std::string take() && {
    if (!file_.empty() && !file_.back().ends_with('\n')) {
      if (out_.ends_with("\r\n")) {
        out_.resize(out_.size() - 2);
      } else if (out_.ends_with('\n')) {
        out_.pop_back();
      }
    } else if (!file_.empty()) {
      end_line();
    }
    return std::move(out_);
  }

 private:
  void end_line() {
    if (!out_.empty() && !out_.ends_with('\n')) out_ += line_feed_;
  }
  void add(std::string_view line) {
    end_line();
    out_ += line;
  }
  const std::vector<std::string_view>& file_;
  shift moved_;
  std::string_view line_feed_ = "\n";
  std::string out_;
};

std::string put_in_place(const cut_update& update, const placement& where, const std::vector<std::string_view>& file,
                         const shift& moved) {
  file_writer out(file, moved);
  // Without any elision, lines before and after are left out all the same.
  const bool keeps_first = update.elided_first || !update.elided;
  const bool keeps_last = update.elided_last || !update.elided;
  std::size_t next = 0;  // line of the file
  for (const block& b : update.blocks) {
    const bool is_first = &b == &update.blocks.front();
    const bool is_last = &b == &update.blocks.back();
    const std::size_t first = where.first_of(b);
    if (first == none) {
      const bool at_end = is_last && !keeps_last;
      if (!at_end && (!is_first || keeps_first)) continue;  // new text, and nothing says where
      if (at_end) {
        out.add_old(next, file.size());
        next = file.size();
      }
    } else if (!is_first || keeps_first) {
      out.add_old(next, where.places[first]);
    }
    for (std::size_t i = b.begin; i < b.end; ++i) {
      if (const std::size_t place = where.places[i]; place != none) {
        out.add_old(place, place + 1);
        next = place + 1;
      } else {
        out.add_new(update.lines[i]);
      }
    }
  }
  if (keeps_last) out.add_old(next, file.size());
  return std::move(out).take();
}

}  // namespace

std::string expected_file(std::string_view file, std::string_view update, std::uint64_t* lines_read) {
  std::uint64_t unread = 0;
  std::uint64_t& count = lines_read != nullptr ? *lines_read : unread;
  const auto lines = text::split_lines(file);
  const auto changes = text::split_lines(update);
  count = lines.size() + changes.size();
  const auto keys_of = [&](auto key) {
    std::vector<std::string_view> keys;
    keys.reserve(lines.size());
    for (const auto line : lines) keys.push_back(key(line));
    return keys;
  };
  const line_table exact(keys_of(without_end), count);
  const cut_update parts = cut(changes, exact);
  if (parts.blocks.empty()) return std::string(file);
  if (file.empty()) return parts.elided ? std::string() : std::string(update);

  placement where(parts, exact, false, count);
  if (!where.in_order()) return std::string(file);
  if (where.has_anchors()) {
    where.extend(parts.blocks);
    return put_in_place(parts, where, lines, {});
  }
  // The whole update may be indented differently.
  const line_table without_indentation(keys_of(trimmed), count);
  placement moved(parts, without_indentation, true, count);
  if (moved.in_order() && moved.has_anchors()) {
    if (const auto by = shift_of(parts, moved.places, lines)) {
      moved.extend(parts.blocks);
      return put_in_place(parts, moved, lines, *by);
    }
  }
  return parts.elided ? put_in_place(parts, where, lines, {}) : std::string(file);
}

}  // namespace redline::formats
