// schema_reader: whether one value matches.

#include <algorithm>
#include <cmath>
#include <functional>

#include "runtime/grammar/schema/schema_clauses.hpp"
#include "runtime/grammar/schema/schema_keywords.hpp"

namespace redline::grammar {
namespace {

std::size_t characters_in(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

}  // namespace

bool schema_reader::hold(const schema_terms& all, const json& value) {
  return std::ranges::all_of(all, [&](const schema_term& t) { return holds(*t.schema, value, 0) != t.is_negated; });
}

bool schema_reader::holds(const json& schema, const json& value, std::uint32_t depth) {
  if (schema.is_boolean()) return schema.get<bool>();
  if (!schema.is_object() || !spend(1)) return false;
  if (depth > nesting_max) {
    refuse(schema, "", "references that never end, or are nested too deeply");
    return false;
  }
  const bool is_only_ref = document_.refs_stand_alone() && schema.contains("$ref");
  for (const auto& [keyword, of] : schema.items()) {
    if (is_only_ref && keyword != "$ref") continue;
    if (!keyword_holds(schema, keyword, of, value, depth + 1)) return false;
  }
  return true;
}

bool schema_reader::keyword_holds(const json& schema, const std::string& keyword, const json& of, const json& value,
                                  std::uint32_t depth) {
  const auto member = [&](const char* name) -> const json* {
    const auto found = schema.find(name);
    return found == schema.end() ? nullptr : &*found;
  };
  const auto is = [&](const json& s) { return holds(s, value, depth); };
  if (is_in(keyword, references)) {
    const json* to = target(schema, keyword, of);
    return to != nullptr && is(*to);
  }
  if (keyword == "allOf") return std::ranges::all_of(of, is);
  if (keyword == "anyOf") return std::ranges::any_of(of, is);
  if (keyword == "oneOf") return std::ranges::count_if(of, is) == 1;
  if (keyword == "not") return !is(of);
  if (keyword == "if") {
    const json* branch = member(is(of) ? "then" : "else");
    return branch == nullptr || is(*branch);
  }
  if (keyword == "type") return (types_named(schema, of) & type_of_value(value)) != 0;
  if (keyword == "enum") {
    // Lists are long, and mostly it is one of their own values that is looked for.
    const bool is_own =
        of.is_array() && !of.empty() && !std::less<>()(&value, &of.front()) && !std::less<>()(&of.back(), &value);
    return is_own || (spend(of.size() / 16) && std::ranges::find(of, value) != of.end());
  }
  if (keyword == "const") return of == value;
  const auto type = type_of_keyword(keyword);
  if ((type & type_of_value(value)) == 0) return true;
  // A clause knows what the keyword means for a value of its type.
  if (type == number_values) {
    if (keyword == "multipleOf") {
      const double ratio = value.get<double>() / of.get<double>();
      return ratio == std::floor(ratio);
    }
    auto made = apply_keyword(clauses(1), schema, keyword, of, depth);
    if (made.empty()) return false;
    auto bounds = made.front().numbers;
    bounds.add_low(decimal::read(value), false);
    bounds.add_high(decimal::read(value), false);
    return !bounds.are_empty();
  }
  if (type == string_values) {
    const auto& text = value.get_ref<const std::string&>();
    auto made = apply_keyword(clauses(1), schema, keyword, of, depth);
    if (made.empty()) return false;
    const auto& c = made.front();
    const auto length = characters_in(text);
    return length >= c.length_min && length <= c.length_max &&
           std::ranges::all_of(c.texts, [&](const auto& t) { return t.texts->matches(text); });
  }
  if (is_in(keyword, rest_keywords)) {
    refuse(schema, keyword, "is not supported for values that are listed");
    return false;
  }
  if (keyword == "minItems") return value.size() >= count_of(schema, keyword, of);
  if (keyword == "maxItems") return value.size() <= count_of(schema, keyword, of);
  if (keyword == "uniqueItems") {
    for (std::size_t i = 0; of == true && i < value.size(); ++i) {
      if (!spend(i)) return false;
      for (std::size_t k = 0; k < i; ++k) {
        if (value[i] == value[k]) return false;
      }
    }
    return true;
  }
  if (keyword == "items" || keyword == "prefixItems") {
    const json* prefix = keyword == "prefixItems" || of.is_array() ? &of : member("prefixItems");
    const json* rest = keyword == "prefixItems" ? nullptr : of.is_array() ? member("additionalItems") : &of;
    for (std::size_t i = 0; i < value.size(); ++i) {
      const bool is_prefix = prefix != nullptr && i < prefix->size();
      const json* one = is_prefix ? (keyword == "prefixItems" || of.is_array() ? &(*prefix)[i] : nullptr) : rest;
      if (one != nullptr && !holds(*one, value[i], depth)) return false;
    }
    return true;
  }
  if (keyword == "contains") {
    const auto count = static_cast<std::uint32_t>(
        std::ranges::count_if(value, [&](const json& item) { return holds(of, item, depth); }));
    const json *least = member("minContains"), *most = member("maxContains");
    return count >= (least == nullptr ? 1 : count_of(schema, "minContains", *least)) &&
           (most == nullptr || count <= count_of(schema, "maxContains", *most));
  }
  if (keyword == "minProperties") return value.size() >= count_of(schema, keyword, of);
  if (keyword == "maxProperties") return value.size() <= count_of(schema, keyword, of);
  if (keyword == "required")
    return !of.is_array() || std::ranges::all_of(of, [&](const json& name) {
      return name.is_string() && value.contains(name.get<std::string>());
    });
  if (keyword == "dependencies" || keyword == "dependentRequired" || keyword == "dependentSchemas") {
    for (const auto& [name, needs] : of.items()) {
      if (!value.contains(name)) continue;
      if (!needs.is_array() ? !is(needs) : !std::ranges::all_of(needs, [&](const json& need) {
            return need.is_string() && value.contains(need.get<std::string>());
          }))
        return false;
    }
    return true;
  }
  for (const auto& [name, item] : value.items()) {
    if (keyword == "propertyNames" && !holds(of, json(name), depth)) return false;
    if (keyword == "properties") {
      if (const auto found = of.find(name); found != of.end() && !holds(*found, item, depth)) return false;
    }
    bool is_known =
        keyword == "additionalProperties" && member("properties") != nullptr && schema["properties"].contains(name);
    if (keyword == "patternProperties" || keyword == "additionalProperties") {
      const json* patterns = member("patternProperties");
      static const json none = json::object();
      for (const auto& [pattern, one] : (patterns == nullptr ? none : *patterns).items()) {
        const auto texts = find_texts(pattern, schema, "patternProperties");
        if (!texts || !texts->matches(name)) continue;
        is_known = true;
        if (keyword == "patternProperties" && !holds(one, item, depth)) return false;
      }
    }
    if (keyword == "additionalProperties" && !is_known && !holds(of, item, depth)) return false;
  }
  return true;
}

}  // namespace redline::grammar
