#pragma once

namespace redline::actors::cli {

/// Replaces this process by a new start of its command: the same program, arguments, environment and process id, and no
/// other state. For a pool's process that must draw another number before it has done anything. Returns an exit code if
/// it fails.
int run_again();

}  // namespace redline::actors::cli
