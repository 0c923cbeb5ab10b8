#include "runtime/base/version.hpp"

namespace redline {
namespace {

std::string& commit() {
  static std::string named;
  return named;
}

}  // namespace

std::string version() { return REDLINE_VERSION; }

std::string build_version() { return commit().empty() ? version() : version() + "+" + commit(); }

void name_commit(std::string_view named) { commit() = named; }

}  // namespace redline
