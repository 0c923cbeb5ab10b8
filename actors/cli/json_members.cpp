#include "actors/cli/json_members.hpp"

namespace redline::actors::cli {

using json = nlohmann::ordered_json;

const json& member(const json& object, const char* name) {
  static const json none;
  if (!object.is_object()) return none;
  const auto at = object.find(name);
  return at == object.end() ? none : *at;
}

std::string text_of(const json& value) { return value.is_string() ? value.get<std::string>() : std::string(); }

std::uint32_t count_of(const json& value) { return value.is_number_unsigned() ? value.get<std::uint32_t>() : 0; }

}  // namespace redline::actors::cli
