#pragma once

#include "actors/cli/commands/edit_flags.hpp"

namespace redline::actors::cli {

/// `redline edit` of several files, or with what only they have: a patch, a review. The exit code.
int edit_many(const edit_flags& f);

}  // namespace redline::actors::cli
