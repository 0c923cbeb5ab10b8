#pragma once

#include "actors/cli/commands/edit_flags.hpp"

namespace redline::actors::cli {

/// `redline edit` of several files, or with a patch or a review, which only this form has. Returns the exit code.
int edit_many(const edit_flags& f);

}  // namespace redline::actors::cli
