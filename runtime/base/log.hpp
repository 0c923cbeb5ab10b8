#pragma once

#include <concepts>
#include <span>
#include <string>
#include <string_view>

namespace redline {

/// off: no line is of this level; a least level of off silences all.
enum class log_level : unsigned char { debug, info, warning, error, off };

/// How lines look on standard error: for people, or one JSON object per line.
enum class log_format : unsigned char { text, json };

/// Set once at start-up, before threads.
void configure_log(log_level least, log_format format);
[[nodiscard]] bool log_enabled(log_level level);

/// What a line is about, for machines to search by: request=req-17 tokens=40, or members of the JSON object. name: not
/// ts, level, who or msg.
struct log_field {
  std::string_view name;
  std::string value;
  bool is_number = false;

  log_field(std::string_view n, std::string v) : name(n), value(std::move(v)) {}
  template<std::integral Number>
  log_field(std::string_view n, Number v) : name(n), value(std::to_string(v)), is_number(true) {}
};

/// Writes one line. `who` is the actor or component ("session 41"). Safe from any thread; never throws. Control
/// characters are escaped, so that nothing from outside begins a line of its own.
void log_line(log_level level, std::string_view who, std::string_view text,
              std::span<const log_field> fields = {}) noexcept;

}  // namespace redline
