#include "runtime/convert/output_path.hpp"

#include <filesystem>
#include <system_error>

namespace redline::convert {

result<void> keep_sources(const std::string& out, std::span<const std::string> sources) {
  for (const std::string& source : sources) {
    std::error_code absent;  // nothing can be lost if one of the two does not exist
    if (!std::filesystem::equivalent(out, source, absent)) continue;
    return failure{errc::invalid_argument,
                   out + ": expected an output file that is not also read, found '" + source + "'"};
  }
  return {};
}

}  // namespace redline::convert
