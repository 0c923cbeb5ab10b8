#include "actors/cli/flags/config_text.hpp"

#include <toml++/toml.h>

#include <algorithm>
#include <charconv>
#include <sstream>

#include "runtime/base/hex.hpp"

namespace redline::actors::cli {
namespace {

constexpr std::size_t sections_max = 4;    // nesting depth; a command and its subcommand are two
constexpr std::ptrdiff_t dots_max = 2000;  // each may nest a table, and the destructor recurses
constexpr std::size_t reason_bytes_max = 160;

std::string trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1));
}

/// The shortest text that parses to this number.
template<class Number>
std::string shortest(Number number) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, number).ptr};
}

template<class Number>
bool is_written_as(const std::string& text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && shortest(number) == text;
}

/// nullopt for dates, arrays and tables.
std::optional<std::string> scalar_of(const toml::node& value) {
  if (const auto* text = value.as_string()) return text->get();
  if (const auto* number = value.as_integer()) return shortest(number->get());
  if (const auto* number = value.as_floating_point()) return shortest(number->get());
  if (const auto* truth = value.as_boolean()) return truth->get() ? "true" : "false";
  return std::nullopt;
}

std::optional<std::vector<std::string>> values_of(const toml::node& value) {
  std::vector<std::string> out;
  const toml::array* all = value.as_array();
  for (std::size_t i = 0; i < (all != nullptr ? all->size() : 1); ++i) {
    auto one = scalar_of(all != nullptr ? (*all)[i] : value);
    if (!one) return std::nullopt;
    out.push_back(std::move(*one));
  }
  return out;
}

class config_reader {
 public:
  explicit config_reader(std::string_view text) : text_(text) {
    while (!text.empty()) {
      const auto end = std::min(text.find('\n'), text.size());
      lines_.push_back(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  }
  config_text read() {
    if (!check_sizes()) return std::move(out_);
    try {
      add(toml::parse(text_), {});
    } catch (const toml::parse_error& e) {
      explain(e.source().begin.line, std::string(e.description()));
    }
    const auto line_of = [](const config_entry& e) { return e.line; };
    std::ranges::stable_sort(out_.entries, std::less(), line_of);
    return std::move(out_);
  }

 private:
  bool check_sizes() {
    if (text_.size() > config_bytes_max) {
      out_.complaint = "expected at most " + std::to_string(config_bytes_max) + " bytes, found more";
      return false;
    }
    std::ptrdiff_t dots = 0;
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      if (lines_[i].size() > config_line_bytes_max) {
        complain(i + 1, "expected at most " + std::to_string(config_line_bytes_max) + " bytes in a line, found " +
                            std::to_string(lines_[i].size()));
        return false;
      }
      if (!trimmed(lines_[i]).starts_with('#')) dots += std::ranges::count(lines_[i], '.');
      if (dots <= dots_max) continue;
      complain(i + 1, "expected at most " + std::to_string(dots_max) + " dots outside comments, found more");
      return false;
    }
    return true;
  }
  void add(const toml::table& table, const std::vector<std::string>& section) {
    for (const auto& [key, value] : table) {
      const std::size_t line = key.source().begin.line;
      config_entry entry{line, trimmed(at(line)), section, {}, {}};
      if (const toml::table* inner = value.as_table()) {
        entry.section.emplace_back(key.str());
        if (entry.section.size() > sections_max) {
          return complain(line, "expected section names of at most " + std::to_string(sections_max) + " parts, found " +
                                    quote_bytes(entry.text, config_shown_bytes_max));
        }
        out_.entries.push_back(entry);
        add(*inner, entry.section);
        continue;
      }
      auto values = values_of(value);
      if (!values) {
        return complain(line, "expected a string, a number, true, false or a list of them, found " +
                                  quote_bytes(entry.text, config_shown_bytes_max));
      }
      entry.key = key.str();
      entry.values = std::move(*values);
      out_.entries.push_back(std::move(entry));
    }
  }
  void explain(std::size_t line, std::string reason) {
    const std::string found = trimmed(at(line));
    constexpr std::string_view begin = "Error while parsing ";
    if (reason.starts_with(begin)) reason.erase(0, begin.size());
    const bool is_section = found.starts_with('[') && found.find('=') == std::string::npos;
    complain(line, std::string("expected ") +
                       (is_section ? "a section such as [serve]" : "TOML such as threads = 2 or model = \"FILE\"") +
                       ", found " + quote_bytes(found, config_shown_bytes_max) + " (" +
                       escape_bytes(reason, reason_bytes_max) + ")");
  }
  void complain(std::size_t line, const std::string& why) {
    if (!out_.complaint) out_.complaint = "line " + std::to_string(line) + ": " + why;
  }
  [[nodiscard]] std::string_view at(std::size_t line) const {
    return line == 0 || line > lines_.size() ? std::string_view() : lines_[line - 1];
  }

  std::string_view text_;
  std::vector<std::string_view> lines_;
  config_text out_;
};

std::string written(const toml::node& value) {
  std::ostringstream out;
  out << toml::toml_formatter(value, toml::format_flags::allow_unicode_strings);
  return out.str();
}

}  // namespace

std::string config_entry::name() const {
  std::string out;
  for (const std::string& part : section) out += (out.empty() ? "" : ".") + part;
  return out + (out.empty() || key.empty() ? "" : ".") + key;
}

config_text read_config_text(std::string_view text) { return config_reader(text).read(); }

std::string toml_string(const std::string& text) { return written(toml::value(text)); }

std::string toml_scalar(const std::string& text) {
  const bool is_real = text.find_first_of(".e") != std::string::npos && text.find('n') == std::string::npos;
  const bool is_number = is_real ? is_written_as<double>(text) : is_written_as<std::int64_t>(text);
  return is_number ? text : toml_string(text);
}

std::string toml_array(const std::vector<std::string>& texts) {
  toml::array all;
  for (const std::string& text : texts) all.push_back(text);
  return written(all);
}

}  // namespace redline::actors::cli
