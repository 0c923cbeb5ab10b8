#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace redline::actors {

/// A file of the studio, the page at /. The views are of the program's own memory.
struct studio_file {
  std::string_view content_type;
  std::string_view bytes;
  std::string_view gzip;    // the same, compressed
  std::string_view digest;  // of the bytes, made with the build: no request reads them for it
};

/// "index.html", "studio.js", ...; nullopt for others, and for all in a build without the page (REDLINE_STUDIO=OFF).
[[nodiscard]] std::optional<studio_file> find_studio_file(std::string_view name);

}  // namespace redline::actors
