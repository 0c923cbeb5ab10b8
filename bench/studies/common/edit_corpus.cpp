#include "bench/studies/common/edit_corpus.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>

#include "actors/cli/command.hpp"
#include "runtime/base/utf8.hpp"
#include "runtime/text/line_diff.hpp"

namespace redline::studies {
namespace {

using json = nlohmann::json;

constexpr std::size_t edits_max = 100'000;
constexpr std::size_t text_bytes_max = 4 << 20;

/// Reads the fields of one line and records the first error.
class edit_line {
 public:
  edit_line(const json& object, std::string where) : object_(object), where_(std::move(where)) {}

  std::string text(const char* field, bool required) {
    const auto it = object_.find(field);
    if (it == object_.end()) {
      if (required) refuse(field, "found none");
      return {};
    }
    if (!it->is_string()) {
      refuse(field, std::string("found ") + it->type_name());
      return {};
    }
    auto value = it->get<std::string>();
    if (value.size() > text_bytes_max) refuse(field, "found " + std::to_string(value.size()) + " bytes");
    return value;
  }
  [[nodiscard]] const std::optional<failure>& problem() const { return problem_; }

 private:
  void refuse(const char* field, const std::string& found) {
    if (problem_) return;
    problem_ = failure{errc::file_malformed, where_ + ": expected \"" + field + "\" as a string of at most " +
                                                 std::to_string(text_bytes_max >> 20) + " MiB, " + found};
  }

  const json& object_;
  std::string where_;
  std::optional<failure> problem_;
};

result<known_edit> parse_edit(std::string_view line, const std::string& where) {
  const json object = json::parse(line, nullptr, false);
  if (object.is_discarded()) return failure{errc::file_malformed, where + ": expected one JSON object, found no JSON"};
  if (!object.is_object()) {
    return failure{errc::file_malformed, where + ": expected one JSON object, found " + object.type_name()};
  }
  edit_line fields(object, where);
  known_edit e;
  e.id = fields.text("id", false);
  e.task = {fields.text("path", false), fields.text("before", true), fields.text("instruction", true)};
  e.after = fields.text("after", true);
  if (fields.problem()) return *fields.problem();
  e.edit_ratio = edit_ratio_of(e.task.before, e.after);
  return e;
}

}  // namespace

std::size_t characters_of(std::string_view text) {
  std::size_t count = 0;
  for (; !text.empty(); ++count) text.remove_prefix(std::max<std::size_t>(utf8::first_unit(text).size_bytes, 1));
  return count;
}

double edit_ratio_of(std::string_view before, std::string_view after) {
  const std::size_t all = characters_of(before) + characters_of(after);
  std::size_t changed = 0;
  for (const auto& line : text::diff_lines(before, after)) {
    if (line.what != text::diff_line::kind::kept) changed += characters_of(line.text);
  }
  return all == 0 ? 0 : static_cast<double>(changed) / static_cast<double>(all);
}

result<std::vector<known_edit>> parse_edits(std::string_view lines, const std::string& name) {
  std::vector<known_edit> edits;
  std::size_t number = 0;
  for (const std::string_view line : text::split_lines(lines)) {
    const std::string where = name + ", line " + std::to_string(++number);
    if (line.find_first_not_of(" \t\r\n") == std::string_view::npos) continue;
    if (edits.size() == edits_max) {
      return failure{errc::file_malformed, where + ": expected at most " + std::to_string(edits_max) + " edits"};
    }
    REDLINE_TRY_ASSIGN(known_edit e, parse_edit(line, where));
    if (e.id.empty()) e.id = "line " + std::to_string(number);
    edits.push_back(std::move(e));
  }
  if (edits.empty()) return failure{errc::file_malformed, name + ": expected at least one edit, found none"};
  return edits;
}

result<std::vector<known_edit>> read_edits(const std::string& path) {
  REDLINE_TRY_ASSIGN(const std::string bytes, read_whole(path));
  REDLINE_TRY_ASSIGN(auto edits, parse_edits(bytes, path));
  std::stable_sort(edits.begin(), edits.end(),
                   [](const known_edit& a, const known_edit& b) { return a.edit_ratio < b.edit_ratio; });
  return edits;
}

std::string damaged(std::string_view text, double right, std::string_view seed) {
  std::seed_seq numbers(seed.begin(), seed.end());
  std::mt19937 random(numbers);
  std::string out;
  bool leave_out = false;
  for (const std::string_view line : text::split_lines(text)) {
    if (static_cast<double>(random()) < right * 4294967296.0) {
      out += line;
      continue;
    }
    leave_out = !leave_out;
    if (leave_out) continue;
    const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
    auto word = std::find_if(line.begin(), line.end(), is_word);
    if (word == line.end()) word = line.begin();
    out.append(line.begin(), word).append("changed_").append(word, line.end());
  }
  return out;
}

std::vector<std::size_t> spread(std::size_t all, std::size_t count) {
  if (count == 0 || count > all) count = all;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < count; ++i) places.push_back((2 * i + 1) * all / (2 * count));
  return places;
}

result<std::string> edits_path(const std::string& given) {
  if (!given.empty()) return given;
  for (const char* path : {"../shared/data/edits/blazedit_like.jsonl", "bench/edits.jsonl"}) {
    if (std::filesystem::exists(path)) return std::string(path);
  }
  return failure{errc::invalid_argument, "expected --edits FILE, a JSONL of edits"};
}

}  // namespace redline::studies
