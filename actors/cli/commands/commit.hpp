#pragma once

#include <string_view>

namespace redline::actors::cli {

/// The commit of this build: "g0123456789ab" or "12.g0123456789ab.dirty". Empty for a release, or if it is not known.
/// Defined in a generated source.
extern const std::string_view built_commit;

}  // namespace redline::actors::cli
