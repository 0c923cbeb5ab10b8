#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace redline::actors {

/// A file of the studio, the page at /. The views point into the program's own memory.
struct studio_file {
  std::string_view content_type;
  std::string_view bytes;
  std::string_view gzip;    // the same bytes, compressed
  std::string_view digest;  // digest of the bytes, computed at build time
};

/// Finds "index.html", "studio.js" and so on. nullopt for other names, and always in a build without the page.
[[nodiscard]] std::optional<studio_file> find_studio_file(std::string_view name);

}  // namespace redline::actors
