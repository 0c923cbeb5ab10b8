#pragma once

#include <functional>
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

/// Writes one line. `who` is the actor or component ("session 41"). Safe from any thread; never throws.
void log_line(log_level level, std::string_view who, std::string_view text) noexcept;

}  // namespace redline
