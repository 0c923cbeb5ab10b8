#include "runtime/base/log.hpp"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <ctime>

#include "runtime/base/utf8.hpp"

namespace redline {
namespace {

std::atomic<log_level> least_level{log_level::info};
std::atomic<log_format> line_format{log_format::text};

const char* name_of(log_level level) {
  switch (level) {
    case log_level::debug:
      return "debug";
    case log_level::info:
      return "info";
    case log_level::warning:
      return "warning";
    case log_level::error:
      return "error";
    case log_level::off:
      break;
  }
  return "?";
}

// JSON strings must not contain control characters, nor text lines line breaks. Collectors drop invalid UTF-8, so such
// bytes become U+FFFD.
void append_escaped(std::string& out, std::string_view text, bool in_quotes = true) {
  for (std::size_t at = 0; at < text.size();) {
    const auto [value, size] = utf8::decode(text, at);
    const bool is_control = value < 0x20 || (value >= 0x7f && value < 0xa0);
    if (in_quotes && (value == '"' || value == '\\')) {
      out += '\\';
      out += text[at];
    } else if (is_control) {
      char buffer[8];
      std::snprintf(buffer, sizeof buffer, "\\u%04x", static_cast<unsigned>(value));
      out += buffer;
    } else if (value >= utf8::stray_byte + 0x80 && value <= utf8::stray_byte + 0xff) {
      out += "\xEF\xBF\xBD";
    } else {
      out += text.substr(at, size);
    }
    at += size;
  }
}

void append_json(std::string& out, const log_field& f) {
  out += ",\"" + std::string(f.name) + "\":";
  if (f.is_number) {
    out += f.value;
    return;
  }
  out += '"';
  append_escaped(out, f.value);
  out += '"';
}

void append_text(std::string& out, const log_field& f) {
  const bool is_word = !f.value.empty() && f.value.find_first_of(" \"=") == std::string::npos;
  out += " " + std::string(f.name) + (is_word ? "=" : "=\"");
  append_escaped(out, f.value, !is_word);
  if (!is_word) out += '"';
}

std::string timestamp() {
  const auto now = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  const auto millis = std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char buffer[48];
  const auto used = std::strftime(buffer, sizeof buffer, "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(buffer + used, sizeof buffer - used, ".%03dZ", static_cast<int>(millis));
  return buffer;
}

}  // namespace

void configure_log(log_level least, log_format format) {
  least_level = least;
  line_format = format;
}

bool log_enabled(log_level level) { return level >= least_level.load(std::memory_order_relaxed); }

void log_line(log_level level, std::string_view who, std::string_view text,
              std::span<const log_field> fields) noexcept {
  if (!log_enabled(level)) return;
  try {
    std::string line;
    if (line_format.load(std::memory_order_relaxed) == log_format::json) {
      line = R"({"ts":")" + timestamp() + R"(","level":")" + name_of(level) + R"(","who":")";
      append_escaped(line, who);
      line += R"(","msg":")";
      append_escaped(line, text);
      line += '"';
      for (const log_field& f : fields) append_json(line, f);
      line += "}\n";
    } else {
      line = timestamp() + " " + name_of(level) + " ";
      append_escaped(line, who, false);
      line += ": ";
      append_escaped(line, text, false);
      for (const log_field& f : fields) append_text(line, f);
      line += '\n';
    }
    std::fwrite(line.data(), 1, line.size(), stderr);
  } catch (...) {
    std::fputs("redline: out of memory while logging\n", stderr);
  }
}

}  // namespace redline
