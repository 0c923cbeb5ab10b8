#include "runtime/base/log.hpp"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <ctime>

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

// JSON strings may not hold control characters, and lines for people no line breaks; bytes over 0x7f pass as they are.
void append_escaped(std::string& out, std::string_view text, bool in_quotes = true) {
  for (const char c : text) {
    if (in_quotes && (c == '"' || c == '\\')) {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char buffer[8];
      std::snprintf(buffer, sizeof buffer, "\\u%04x", c);
      out += buffer;
    } else {
      out += c;
    }
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
