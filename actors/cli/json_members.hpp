#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace redline::actors::cli {

// Members of answers and messages that may hold anything.

/// A member, or null where there is none or `object` is no object.
const nlohmann::ordered_json& member(const nlohmann::ordered_json& object, const char* name);
/// Members of members.
template<class... Names>
const nlohmann::ordered_json& member(const nlohmann::ordered_json& object, const char* first, const char* second,
                                     const Names*... more) {
  return member(member(object, first), second, more...);
}
/// The text, or an empty one for what is no string.
std::string text_of(const nlohmann::ordered_json& value);
/// The number, or 0 for what is no count.
std::uint32_t count_of(const nlohmann::ordered_json& value);

}  // namespace redline::actors::cli
