#include "runtime/copy/oracle.hpp"

#include <algorithm>
#include <limits>
#include <string_view>
#include <unordered_map>

#include "runtime/text/line_diff.hpp"

namespace redline::copy {
namespace {

constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max() / 2;
constexpr std::uint64_t gen_open_bytes = std::string_view("<gen>").size();
constexpr std::uint64_t gen_close_bytes = std::string_view("</gen>").size();

std::uint64_t digits(std::uint64_t n) {
  std::uint64_t count = 1;
  for (; n >= 10; n /= 10) ++count;
  return count;
}

/// The units of all files in one sequence, with a separator after each file that equals no unit.
struct old_units {
  struct place {
    std::uint32_t file = 0;   // from 1; 0 for a separator
    std::uint32_t index = 0;  // from 1
  };
  std::vector<place> places;
  std::unordered_map<std::string_view, std::vector<std::uint32_t>> where;

  old_units(std::span<const document> files, unit of) {
    for (std::uint32_t f = 1; f <= files.size(); ++f) {
      const auto& file = files[f - 1];
      for (std::uint32_t i = 1; i <= file.count(of); ++i) {
        where[file.slice(of, i, i)].push_back(static_cast<std::uint32_t>(places.size()));
        places.push_back({f, i});
      }
      places.push_back({});
    }
  }
  [[nodiscard]] const std::vector<std::uint32_t>* find(std::string_view text) const {
    const auto at = where.find(text);
    return at == where.end() ? nullptr : &at->second;
  }
};

program by_line_difference(const document& before, const document& after) {
  program p;
  std::uint32_t line = 0;
  for (const auto& d : text::diff_lines(before.bytes(), after.bytes())) {
    if (d.what != text::diff_line::kind::added) ++line;
    if (d.what == text::diff_line::kind::removed) continue;
    if (d.what == text::diff_line::kind::kept) {
      auto* last = p.empty() ? nullptr : std::get_if<copy_op>(&p.back());
      if (last != nullptr && last->last + 1 == line)
        last->last = line;
      else
        p.emplace_back(copy_op{.file = 1, .first = line, .last = line});
    } else {
      if (p.empty() || !std::holds_alternative<gen_op>(p.back())) p.emplace_back(gen_op{});
      std::get<gen_op>(p.back()).text += d.text;
    }
  }
  return p;
}

/// The cheapest program for the new file from one unit on.
struct choice {
  std::uint64_t bytes = never;   // size of the program from here, at an op boundary
  std::uint32_t length = 0;      // units copied; 0 means that a gen op begins
  std::uint32_t from = 0;        // index into old_units::places
  std::uint64_t inside = never;  // size of the program from here, if a gen op's text is open
  bool gen_ends = false;         // the open gen op ends after this unit
};

class search {
 public:
  search(std::span<const document> files, const document& after, const oracle_options& options)
      : after_(after),
        options_(options),
        old_(files, options.of),
        names_files_(files.size() > 1),
        choices_(after.count(options.of) + 1),
        lengths_(old_.places.size() + 1),
        next_lengths_(old_.places.size() + 1) {}

  /// Returns false if work_max is exceeded.
  bool run() {
    std::uint64_t pairs = 0;
    const std::uint32_t count = after_.count(options_.of);
    for (std::uint32_t p = 0; p < count; ++p) {
      if (const auto* same = old_.find(unit_at(p))) pairs += same->size();
      if (pairs > options_.work_max) return false;
    }
    choices_[count].bytes = 0;
    const std::vector<std::uint32_t>* touched = nullptr;
    for (std::uint32_t p = count; p-- > 0;) {
      consider_text(p);
      const auto* same = old_.find(unit_at(p));
      if (same != nullptr) {
        for (const std::uint32_t i : *same) consider_copies(p, i);
      }
      // Clears the lengths of the next unit, which are no longer needed, and keeps those of this one.
      if (touched != nullptr) {
        for (const std::uint32_t i : *touched) next_lengths_[i] = 0;
      }
      std::swap(lengths_, next_lengths_);
      touched = same;
    }
    return true;
  }

  [[nodiscard]] program best() const {
    program found;
    const std::uint32_t count = after_.count(options_.of);
    for (std::uint32_t p = 0; p < count;) {
      const choice& c = choices_[p];
      if (c.length > 0) {
        const auto& place = old_.places[c.from];
        found.emplace_back(copy_op{place.file, options_.of, place.index, place.index + c.length - 1});
        p += c.length;
        continue;
      }
      gen_op gen;
      for (bool ends = false; !ends; ++p) {
        gen.text += unit_at(p);
        ends = choices_[p].gen_ends;
      }
      found.emplace_back(std::move(gen));
    }
    return found;
  }

 private:
  [[nodiscard]] std::string_view unit_at(std::uint32_t p) const { return after_.slice(options_.of, p + 1, p + 1); }

  // "</gen>" contains no line feed, so lines can be escaped one by one. Several tokens together can form one; the count
  // is then a few bytes too low, but the program is still correct.
  void consider_text(std::uint32_t p) {
    choice& c = choices_[p];
    const choice& next = choices_[p + 1];
    const std::uint64_t close = gen_close_bytes + next.bytes;
    c.gen_ends = close <= next.inside;
    c.inside = escape_text(unit_at(p)).size() + std::min(close, next.inside);
    c.bytes = gen_open_bytes + c.inside;
  }

  void consider_copies(std::uint32_t p, std::uint32_t i) {
    const std::uint32_t most = lengths_[i] = next_lengths_[i + 1] + 1;
    work_ += most;
    const std::uint32_t least = work_ > options_.work_max / 2 ? most : options_.span_min;
    const auto& place = old_.places[i];
    const std::uint64_t fixed = (options_.of == unit::lines ? std::string_view("<copy lines=\"-\"/>")
                                                            : std::string_view("<copy tokens=\"-\"/>"))
                                    .size() +
                                digits(place.index) +
                                (names_files_ ? std::string_view("file=\"\" ").size() + digits(place.file) : 0);
    choice& c = choices_[p];
    for (std::uint32_t length = most; length >= std::max(least, options_.span_min) && length > 0; --length) {
      const std::uint64_t bytes = fixed + digits(place.index + length - 1) + choices_[p + length].bytes;
      const bool better = bytes < c.bytes || (bytes == c.bytes && length > c.length);
      if (!better) continue;
      c.bytes = bytes;
      c.length = length;
      c.from = i;
    }
  }

  const document& after_;
  const oracle_options options_;
  old_units old_;
  bool names_files_;
  std::vector<choice> choices_;
  // By old position: how many equal units begin there, for the current unit and for the next one.
  std::vector<std::uint32_t> lengths_;
  std::vector<std::uint32_t> next_lengths_;
  std::uint64_t work_ = 0;
};

}  // namespace

program shortest_program(std::span<const document> files, const document& after, const oracle_options& options) {
  search s(files, after, options);
  if (s.run()) return s.best();
  if (files.empty()) return {gen_op{after.bytes()}};
  return by_line_difference(files.front(), after);
}

}  // namespace redline::copy
