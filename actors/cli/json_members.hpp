#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace redline::actors::cli {

// Accessors for answers and messages whose contents are not checked.

/// A member, or null if it is absent or `object` is not an object.
const nlohmann::ordered_json& member(const nlohmann::ordered_json& object, const char* name);
/// A member of nested members.
template<class... Names>
const nlohmann::ordered_json& member(const nlohmann::ordered_json& object, const char* first, const char* second,
                                     const Names*... more) {
  return member(member(object, first), second, more...);
}
/// The text, or an empty one if the value is not a string.
std::string text_of(const nlohmann::ordered_json& value);
/// The number, or 0 if the value is not a count.
std::uint32_t count_of(const nlohmann::ordered_json& value);

}  // namespace redline::actors::cli
