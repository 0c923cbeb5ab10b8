#pragma once

#include <string>
#include <string_view>

namespace redline {

/// "1.2.3", of this release: what processes of a pool, answers and files on disk are compared by.
std::string version();

/// For people: the same, and of which commit it is where that was named, as in "1.2.3+g0123456789ab".
std::string build_version();
/// Once, before threads.
void name_commit(std::string_view commit);

}  // namespace redline
