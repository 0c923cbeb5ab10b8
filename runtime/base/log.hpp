#pragma once

#include <concepts>
#include <span>
#include <string>
#include <string_view>

namespace redline {

/// off: no line has this level; as the least level it silences all lines.
enum class log_level : unsigned char { debug, info, warning, error, off };

/// The format of lines on standard error: readable text, or one JSON object per line.
enum class log_format : unsigned char { text, json };

/// Call it once at startup, before threads start.
void configure_log(log_level least, log_format format);
[[nodiscard]] bool log_enabled(log_level level);

/// A searchable field of a line: request=req-17 tokens=40, or a member of the JSON object. The name must not be ts,
/// level, `who` or msg.
struct log_field {
  std::string_view name;
  std::string value;
  bool is_number = false;

  log_field(std::string_view n, std::string v) : name(n), value(std::move(v)) {}
  template<std::integral Number>
  log_field(std::string_view n, Number v) : name(n), value(std::to_string(v)), is_number(true) {}
};

/// Writes one line. `who` is the actor or component ("session 41"). Thread-safe; never throws. Control characters are
/// escaped, so that external input cannot begin a line of its own.
void log_line(log_level level, std::string_view who, std::string_view text,
              std::span<const log_field> fields = {}) noexcept;

}  // namespace redline
