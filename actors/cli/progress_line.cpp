#include "actors/cli/progress_line.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace redline::actors::cli {

progress_line::progress_line(bool enabled) : active_(enabled && isatty(STDERR_FILENO) != 0) {}
progress_line::~progress_line() { clear(); }

void progress_line::show(const std::string& text) {
  if (!active_) return;
  const std::size_t padding = width_ > text.size() ? width_ - text.size() : 0;
  std::fprintf(stderr, "\r%s%*s", text.c_str(), static_cast<int>(padding), "");
  std::fflush(stderr);
  width_ = text.size();
}

void progress_line::clear() {
  if (!active_ || width_ == 0) return;
  std::fprintf(stderr, "\r%*s\r", static_cast<int>(width_), "");
  std::fflush(stderr);
  width_ = 0;
}

void show_loading(progress_line& line, const std::string& what, std::uint64_t done, std::uint64_t all) {
  show_progress(line, "loading " + what, done, all);
}

void show_progress(progress_line& line, const std::string& what, std::uint64_t done, std::uint64_t all) {
  if (done >= all) return line.clear();
  const int filled = static_cast<int>(30 * done / std::max<std::uint64_t>(all, 1));
  line.show(what + " [" + std::string(static_cast<std::size_t>(filled), '#') +
            std::string(static_cast<std::size_t>(30 - filled), '.') + "]" +
            (all >> 20 == 0 ? "" : " " + std::to_string(done >> 20) + " of " + std::to_string(all >> 20) + " MiB"));
}

}  // namespace redline::actors::cli
