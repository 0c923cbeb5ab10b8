#pragma once

#include <string>
#include <string_view>

namespace redline {

/// The version of this release, "1.2.3". It decides whether processes of a pool, answers and files on disk match.
std::string version();

/// The version for users, with the commit if that was set, as in "1.2.3+g0123456789ab".
std::string build_version();
/// Sets the commit. Call it once, before threads start.
void name_commit(std::string_view commit);

}  // namespace redline
