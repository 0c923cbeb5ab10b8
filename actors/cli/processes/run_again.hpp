#pragma once

namespace redline::actors::cli {

/// Runs this process's own command in its place: the same program, arguments, environment and process id, nothing else
/// of it. For a process of a pool that has to draw another number, before it has done anything. Gives an exit code when
/// that cannot be done.
int run_again();

}  // namespace redline::actors::cli
