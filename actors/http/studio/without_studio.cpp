#include "actors/http/studio/studio_files.hpp"

namespace redline::actors {

std::optional<studio_file> find_studio_file(std::string_view) { return std::nullopt; }

}  // namespace redline::actors
