// schema_reader: which values do not match.

#include <algorithm>
#include <set>
#include <utility>

#include "runtime/grammar/schema/schema_clauses.hpp"
#include "runtime/grammar/schema/schema_keywords.hpp"
#include "runtime/grammar/schema/string_formats.hpp"

namespace redline::grammar {
namespace {

constexpr std::size_t others_max = 16;  // alternatives to what is said of members that are not named

}  // namespace

/// Leaves out an array or an object, and all others of its size that are not listed.
schema_reader::clauses schema_reader::without_size(clauses all, const json& value) {
  const auto type = type_of_value(value);
  const auto size = static_cast<std::uint32_t>(value.size());
  is_narrowed_ = is_narrowed_ || size > 0;
  clauses out;
  for (auto& c : all) {
    if (c.values || (c.types & type) == 0) {
      out.push_back(std::move(c));
      continue;
    }
    auto larger = c, smaller = c;
    c.types &= ~type;
    larger.types = smaller.types = type;
    (type == array_values ? larger.items_min : larger.members_min) =
        std::max(type == array_values ? c.items_min : c.members_min, size + 1);
    auto& most = type == array_values ? smaller.items_max : smaller.members_max;
    if (size > 0) most = std::min(most, size - 1);
    out.push_back(std::move(c));
    out.push_back(std::move(larger));
    if (size > 0) out.push_back(std::move(smaller));
  }
  return prune(std::move(out));
}

/// The values that do not fulfil one keyword.
schema_reader::clauses schema_reader::deny_keyword(clauses all, const json& schema, const std::string& keyword,
                                                   const json& value, std::uint32_t depth) {
  if (const auto type = type_of_keyword(keyword); type != 0) {
    for (auto& c : all) c.types &= type;
    all = prune(std::move(all));
  }
  const auto each = [&all](auto change) {
    for (auto& c : all) change(c);
    return std::move(all);
  };
  // Values that only this keyword tells apart are left out: an answer may be narrower than a schema, never wider.
  // Listed values are all looked at in the end.
  const auto cannot = [&]() -> clauses {
    is_narrowed_ = is_narrowed_ || !all.empty();
    std::erase_if(all, [](const schema_clause& c) { return !c.values; });
    return std::move(all);
  };
  const auto deny_each = [&](const json& list) {
    for (const auto& one : list) all = apply(std::move(all), {&one, true}, depth + 1);
    return std::move(all);
  };
  const auto deny_some = [&](const json& list) {
    std::vector<schema_term> terms;
    for (const auto& one : list) terms.push_back({&one, true});
    return any_of(std::move(all), terms, depth);
  };
  if (is_in(keyword, references)) {
    const json* to = target(schema, keyword, value);
    return to == nullptr ? clauses{} : apply(std::move(all), {to, true}, depth + 1);
  }
  if (keyword == "allOf") return !is_list(schema, keyword, value) ? clauses{} : deny_some(value);
  if (keyword == "anyOf") return !is_list(schema, keyword, value) ? clauses{} : deny_each(value);
  if (keyword == "oneOf") {
    // None of them, or two of them.
    if (!is_list(schema, keyword, value)) return {};
    clauses out;
    for (std::size_t i = 0; i < value.size() && !why_; ++i) {
      for (std::size_t k = i + 1; k < value.size() && !why_; ++k) {
        auto two = apply(apply(all, {&value[i]}, depth + 1), {&value[k]}, depth + 1);
        out.insert(out.end(), std::make_move_iterator(two.begin()), std::make_move_iterator(two.end()));
      }
    }
    auto none = deny_each(value);
    out.insert(out.end(), std::make_move_iterator(none.begin()), std::make_move_iterator(none.end()));
    return prune(std::move(out));
  }
  if (keyword == "not") return apply(std::move(all), {&value}, depth + 1);
  if (keyword == "if") {
    clauses out;
    for (const bool is_then : {true, false}) {
      const auto branch = schema.find(is_then ? "then" : "else");
      if (branch == schema.end()) continue;
      auto some = apply(apply(all, {&value, !is_then}, depth + 1), {&*branch, true}, depth + 1);
      out.insert(out.end(), std::make_move_iterator(some.begin()), std::make_move_iterator(some.end()));
    }
    return out;
  }
  if (keyword == "type") {
    const auto types = types_named(schema, value);
    return each([&](schema_clause& c) { c.types &= ~types; });
  }
  if (keyword == "enum" || keyword == "const") {
    for (const json* one : pointers(value, keyword == "enum")) {
      for (auto& c : all) c.excluded.push_back(one);
      if (one->is_structured()) all = without_size(std::move(all), *one);
    }
    return all;
  }
  if (keyword == "multipleOf") return cannot();
  if (type_of_keyword(keyword) == number_values) {
    if (!value.is_number()) return {};
    const auto bound = decimal::read(value);
    const auto flag = [&](const char* name) {
      const auto found = schema.find(name);
      return found != schema.end() && *found == true;
    };
    return each([&](schema_clause& c) {
      if (keyword == "minimum") c.numbers.add_high(bound, !flag("exclusiveMinimum"));
      if (keyword == "maximum") c.numbers.add_low(bound, !flag("exclusiveMaximum"));
      if (keyword == "exclusiveMinimum") c.numbers.add_high(bound, false);
      if (keyword == "exclusiveMaximum") c.numbers.add_low(bound, false);
    });
  }
  if (keyword.starts_with("min") && type_of_keyword(keyword) != 0) {
    const auto count = count_of(schema, keyword, value);
    if (count == 0) return {};
    return each([&](schema_clause& c) {
      auto& most = keyword == "minLength" ? c.length_max : keyword == "minItems" ? c.items_max : c.members_max;
      most = std::min(most, count - 1);
    });
  }
  if (keyword.starts_with("max") && type_of_keyword(keyword) != 0) {
    const auto count = count_of(schema, keyword, value);
    return each([&](schema_clause& c) {
      auto& least = keyword == "maxLength" ? c.length_min : keyword == "maxItems" ? c.items_min : c.members_min;
      least = std::max(least, count + 1);
    });
  }
  if (keyword == "format") {
    // Some formats are narrower here than in their standards.
    const bool asserts =
        !value.is_string() || kind_of_format(value.get_ref<const std::string&>()) != format_kind::unheard_of;
    return asserts ? cannot() : clauses{};
  }
  if (keyword == "pattern") {
    if (all.empty()) return {};
    const auto texts = value.is_string() ? find_texts(value.get<std::string>(), schema, keyword) : nullptr;
    return each([&](schema_clause& c) {
      if (texts) c.texts.push_back({texts, true});
    });
  }
  if (keyword == "items") {
    if (value == true || value == json::object()) return {};
    if (value.is_array() || schema.contains("prefixItems")) return cannot();
    return each([&](schema_clause& c) { c.contains.push_back({{&value, true}}); });
  }
  if (keyword == "contains") {
    if (schema.contains("minContains") || schema.contains("maxContains")) return cannot();
    return each([&](schema_clause& c) { add_term(c.every_item, {&value, true}); });
  }
  if (keyword == "uniqueItems") return value == true ? cannot() : clauses{};
  if (keyword == "required") {
    clauses out;
    for (const auto& name : value) {
      if (!name.is_string() || !spend(clause_steps * all.size())) return {};
      for (auto c : all) {
        c.forbidden.insert(name.get<std::string>());
        out.push_back(std::move(c));
      }
    }
    return prune(std::move(out));
  }
  if (keyword == "properties") {
    clauses out;
    for (const auto& [name, member] : value.items()) {
      if (member == true || !spend(all.size())) continue;
      for (auto c : all) {
        if (!c.requires_member(name)) c.required.push_back(name);
        add_term(c.members[name], {&member, true});
        out.push_back(std::move(c));
      }
    }
    return prune(std::move(out));
  }
  if (keyword == "additionalProperties" && (value == true || value == json::object())) return {};
  if (keyword == "additionalProperties") {
    // One of the members that are named elsewhere is not allowed here. Others could be, but are left out, as are all
    // where these would be many alternatives.
    is_narrowed_ = true;
    const auto properties = schema.find("properties"), patterns = schema.find("patternProperties");
    const auto is_known = [&](const std::string& name) {
      if (properties != schema.end() && properties->contains(name)) return true;
      const auto matches = [&](const auto& one) {
        const auto texts = find_texts(one.key(), schema, "patternProperties");
        return texts && texts->matches(name);
      };
      if (patterns == schema.end()) return false;
      const auto all_patterns = patterns->items();
      return std::any_of(all_patterns.begin(), all_patterns.end(), matches);
    };
    clauses out;
    for (const auto& c : all) {
      if (c.values) {
        out.push_back(c);
        continue;
      }
      std::set<std::string> names;
      for (const json* object : c.objects) {
        const auto own = object->find("properties");
        if (own == object->end() || !own->is_object()) continue;
        for (const auto& [name, unused] : own->items()) {
          if (out.size() == others_max) return cannot();
          if (!spend(clause_steps)) return {};
          if (is_known(name) || !names.insert(name).second) continue;
          auto with = c;
          if (!with.requires_member(name)) with.required.push_back(name);
          add_term(with.members[name], {&value, true});
          out.push_back(std::move(with));
        }
      }
    }
    return prune(std::move(out));
  }
  if (type_of_keyword(keyword) != 0) return cannot();
  return {};  // an annotation asserts nothing
}

}  // namespace redline::grammar
