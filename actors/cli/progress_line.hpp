#pragma once

#include <cstdint>
#include <string>

namespace redline::actors::cli {

/// A one-line display on standard error, only on a terminal.
class progress_line {
 public:
  explicit progress_line(bool enabled = true);
  ~progress_line();
  void show(const std::string& text);
  void clear();

 private:
  bool active_;
  std::size_t width_ = 0;
};

/// "WHAT [###...] 12 of 34 MiB"; clears the line at the end.
void show_progress(progress_line& line, const std::string& what, std::uint64_t done, std::uint64_t all);
void show_loading(progress_line& line, const std::string& what, std::uint64_t done, std::uint64_t all);

}  // namespace redline::actors::cli
