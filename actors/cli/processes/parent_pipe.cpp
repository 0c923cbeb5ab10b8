#include "actors/cli/processes/parent_pipe.hpp"

#include <unistd.h>

#include <string>

namespace redline::actors::cli {
namespace {

/// Writing a short line to a pipe is atomic. Errors are ignored, because a parent that has ended needs no report.
void write_line(int descriptor, const std::string& text) {
  const std::string line = text + "\n";
  (void)!::write(descriptor, line.data(), line.size());
}

}  // namespace

parent_pipe::~parent_pipe() { close(); }

void parent_pipe::close() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

void parent_pipe::tell_port(std::uint16_t port) {
  if (descriptor_ >= 0) write_line(descriptor_, std::to_string(port));
}

bool parent_pipe::tell_failure(const failure& why) {
  if (descriptor_ < 0) return false;
  write_line(descriptor_, "failed " + std::to_string(static_cast<int>(why.code)) + " " +
                              (why.context.empty() ? why.describe() : why.context));
  close();
  return true;
}

void parent_pipe::note_one() {
  if (noted_.fetch_add(1) != 1 || descriptor_ < 0) return;
  write_line(descriptor_, "ready");
  close();
}

}  // namespace redline::actors::cli
