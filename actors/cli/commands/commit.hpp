#pragma once

#include <string_view>

namespace redline::actors::cli {

/// Of which commit this build is, as the build finds it: "g0123456789ab", "12.g0123456789ab.dirty"; empty for a release
/// and where nobody knows. In a source that the build makes.
extern const std::string_view built_commit;

}  // namespace redline::actors::cli
