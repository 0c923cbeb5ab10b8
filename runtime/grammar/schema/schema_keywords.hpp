#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <vector>

#include "runtime/grammar/schema/schema_document.hpp"

namespace redline::grammar {

// What the files of `schema_reader` share.

inline constexpr std::uint32_t nesting_max = 100;  // of references and combinations without a value in between
inline constexpr std::size_t clause_steps = 8;     // to copy one

inline constexpr std::string_view references[] = {"$ref", "$dynamicRef", "$recursiveRef"};
/// They are read after all other keywords of their schema.
inline constexpr std::string_view rest_keywords[] = {"unevaluatedProperties", "unevaluatedItems"};

template<class List>
bool is_in(std::string_view keyword, const List& list) {
  return std::ranges::find(list, keyword) != std::end(list);
}

/// The values of a list, or a single one.
inline std::vector<const json*> pointers(const json& value, bool is_list) {
  std::vector<const json*> out;
  if (!is_list) return {&value};
  for (const auto& one : value) out.push_back(&one);
  return out;
}

/// The types of whose values a keyword says something; none if it speaks of all types, or of nothing.
[[nodiscard]] std::uint32_t type_of_keyword(std::string_view keyword);

}  // namespace redline::grammar
