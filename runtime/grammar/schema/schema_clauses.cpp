#include "runtime/grammar/schema/schema_clauses.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/base/pause_point.hpp"
#include "runtime/grammar/schema/schema_keywords.hpp"
#include "runtime/grammar/schema/string_formats.hpp"

namespace redline::grammar {
namespace {

constexpr std::size_t clauses_max = 512;
constexpr std::uint32_t pattern_states_max = 1 << 13;  // of all patterns together

constexpr std::pair<std::string_view, std::uint32_t> types_by_name[] = {
    {"null", null_values},     {"boolean", boolean_values}, {"object", object_values}, {"array", array_values},
    {"string", string_values}, {"number", number_values},   {"integer", whole_values}};

/// Keywords that assert something about values of all types.
constexpr std::string_view of_all_types[] = {"$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "oneOf",
                                             "not",  "if",          "type",          "enum",  "const"};
/// Keywords that assert something in some drafts and cannot be enforced.
constexpr std::string_view refused_in_draft_3[] = {"extends", "disallow", "divisibleBy"};
constexpr std::string_view refused_up_to_draft_7[] = {"contentEncoding", "contentMediaType"};  // annotations since then

bool has_rest(const json& schema) {
  return std::ranges::any_of(rest_keywords, [&](const auto k) { return schema.contains(std::string(k)); });
}

bool contains(const std::vector<const json*>& list, const json& value) {
  return std::ranges::any_of(list, [&](const json* one) { return *one == value; });
}

/// A value for an error message.
std::string show(const json& value) {
  if (value.is_string()) return "'" + value.get_ref<const std::string&>().substr(0, 128) + "'";
  return value.dump(-1, ' ', false, json::error_handler_t::replace).substr(0, 128);
}

}  // namespace

std::uint32_t type_of_keyword(std::string_view keyword) {
  static const std::map<std::string_view, std::uint32_t> types = {{"minimum", number_values},
                                                                  {"maximum", number_values},
                                                                  {"exclusiveMinimum", number_values},
                                                                  {"exclusiveMaximum", number_values},
                                                                  {"multipleOf", number_values},
                                                                  {"minLength", string_values},
                                                                  {"maxLength", string_values},
                                                                  {"pattern", string_values},
                                                                  {"format", string_values},
                                                                  {"minItems", array_values},
                                                                  {"maxItems", array_values},
                                                                  {"uniqueItems", array_values},
                                                                  {"items", array_values},
                                                                  {"prefixItems", array_values},
                                                                  {"contains", array_values},
                                                                  {"unevaluatedItems", array_values},
                                                                  {"minProperties", object_values},
                                                                  {"maxProperties", object_values},
                                                                  {"required", object_values},
                                                                  {"properties", object_values},
                                                                  {"additionalProperties", object_values},
                                                                  {"patternProperties", object_values},
                                                                  {"propertyNames", object_values},
                                                                  {"unevaluatedProperties", object_values},
                                                                  {"dependencies", object_values},
                                                                  {"dependentRequired", object_values},
                                                                  {"dependentSchemas", object_values}};
  const auto at = types.find(keyword);
  return at == types.end() ? 0 : at->second;
}

void add_term(schema_terms& to, schema_term one) {
  if (std::ranges::find(to, one) == to.end()) to.push_back(one);
}

std::uint32_t type_of_value(const json& value) {
  if (value.is_number_float()) {
    const auto number = value.get<double>();
    return number == std::floor(number) ? whole_values : fraction_values;
  }
  if (value.is_number()) return whole_values;
  if (value.is_object()) return object_values;
  if (value.is_array()) return array_values;
  if (value.is_string()) return string_values;
  return value.is_boolean() ? boolean_values : null_values;
}

bool asserts(std::string_view keyword) {
  return type_of_keyword(keyword) != 0 || is_in(keyword, of_all_types) || is_in(keyword, refused_in_draft_3) ||
         is_in(keyword, refused_up_to_draft_7);
}

bool schema_clause::requires_member(const std::string& name) const {
  return std::ranges::find(required, name) != required.end();
}

bool schema_clause::leaves_item(const rest_rule& rest, std::size_t i) const {
  using enum evaluation::kind;
  return std::none_of(evaluated.begin() + static_cast<std::ptrdiff_t>(rest.first),
                      evaluated.begin() + static_cast<std::ptrdiff_t>(rest.last), [i](const evaluation& e) {
                        return e.what == every_item || (e.what == prefix && i < e.value->size());
                      });
}

void schema_reader::refuse(const json& schema, const std::string& keyword, const std::string& problem) {
  if (!why_)
    why_ = failure{errc::invalid_argument,
                   document_.path_of(schema) + (keyword.empty() ? "" : "." + keyword.substr(0, 64)) + ": " + problem};
}

bool schema_reader::spend(std::size_t steps) {
  pause_point();
  steps_.add(steps);
  if (steps_.is_over() && !why_)
    why_ = failure{errc::invalid_argument, "schema: takes more than " + std::to_string(steps_.limit()) +
                                               " steps to compile; expected fewer or shorter names, values, "
                                               "references and combinations"};
  return !why_;
}

std::uint32_t schema_reader::types_named(const json& schema, const json& type) {
  std::uint32_t set = 0;
  const bool is_list = type.is_array();
  for (const auto& one : is_list ? type : json::array({type})) {
    const auto known = !one.is_string() ? std::end(types_by_name)
                                        : std::ranges::find(types_by_name, one.get_ref<const std::string&>(),
                                                            [](const auto& t) { return t.first; });
    if (known == std::end(types_by_name)) {
      if (one == "any" && document_.may_be_draft_3()) return all_values;
      refuse(schema, "type",
             one.is_string() ? show(one) + " is not a type of JSON Schema" : "must be a type's name or a list of them");
      return 0;
    }
    set |= known->second;
  }
  return set;
}

std::uint32_t schema_reader::count_of(const json& schema, const std::string& keyword, const json& count) {
  const double value = count.is_number() ? count.get<double>() : -1;
  if (value < 0 || value != std::floor(value)) {
    refuse(schema, keyword, "must be a count");
    return 0;
  }
  return static_cast<std::uint32_t>(std::min(value, 4e9));
}

bool schema_reader::is_list(const json& schema, const std::string& keyword, const json& list) {
  if (!list.is_array() || list.empty()) refuse(schema, keyword, "must be a list of schemas");
  return !why_;
}
bool schema_reader::is_object(const json& schema, const std::string& keyword, const json& value) {
  if (!value.is_object()) refuse(schema, keyword, "must be an object");
  return !why_;
}

const json* schema_reader::target(const json& schema, const std::string& keyword, const json& reference) {
  if (document_.may_be_draft_3() && schema.contains("$id") && reference.is_string() &&
      !reference.get_ref<const std::string&>().starts_with('#') && !document_.is_root(schema)) {
    refuse(schema, "$ref", "is relative to the '$id' beside it since draft 2019 only: name the draft in '$schema'");
    return nullptr;
  }
  const json* found = reference.is_string() ? document_.find(schema, reference.get_ref<const std::string&>()) : nullptr;
  if (found == nullptr) refuse(schema, keyword, show(reference) + " is not in the schema");
  if (found == nullptr || keyword == "$ref" || document_.is_static(*found)) return found;
  refuse(schema, keyword, show(reference) + " may mean several schemas, depending on where it is reached from");
  return nullptr;
}

std::shared_ptr<const regex_dfa> schema_reader::find_texts(const std::string& pattern, const json& schema,
                                                           const std::string& keyword) {
  auto& known = texts_[pattern];
  if (known || why_) return known;
  auto made = regex_dfa::compile(pattern, {.how = regex_dfa::match::anywhere, .is_json = true}, pattern_steps_);
  if (!made) {
    refuse(schema, keyword, made.error().context);
    return nullptr;
  }
  states_count_ += made->states_count();
  if (states_count_ > pattern_states_max || !spend(made->states_count())) {
    refuse(schema, keyword, "the patterns of the schema are too large together");
    return nullptr;
  }
  return known = std::make_shared<const regex_dfa>(std::move(*made));
}

// Alternatives.

std::vector<schema_clause> schema_reader::expand(const schema_terms& all) {
  clauses out(1);
  for (const auto& one : all) out = apply(std::move(out), one, 0);
  for (auto& c : out) {
    if (!c.values) continue;
    std::erase_if(*c.values, [&](const json* v) { return !hold(all, *v); });
  }
  return prune(std::move(out));
}

schema_reader::clauses schema_reader::prune(clauses all) {
  if (why_) return {};
  std::erase_if(all, [this](schema_clause& c) { return !is_possible(c); });
  if (all.size() > clauses_max && !why_)
    why_ = failure{errc::invalid_argument, "schema: more than " + std::to_string(clauses_max) +
                                               " combinations of alternatives hold at the same time"};
  return why_ ? clauses{} : std::move(all);
}

/// Whether some value may match; drops types of which none does.
bool schema_reader::is_possible(schema_clause& c) {
  if (c.length_min > c.length_max) c.types &= ~std::uint32_t{string_values};
  if (c.items_min > c.items_max) c.types &= ~std::uint32_t{array_values};
  if (c.numbers.are_empty()) c.types &= ~std::uint32_t{number_values};
  if (c.members_min > c.members_max || c.required.size() > c.members_max) c.types &= ~std::uint32_t{object_values};
  for (const auto& name : c.required) {
    if (c.forbidden.contains(name) || !has_common_value(c, name)) c.types &= ~std::uint32_t{object_values};
  }
  if (!c.values) return c.types != 0;
  std::erase_if(*c.values,
                [&](const json* v) { return (type_of_value(*v) & c.types) == 0 || contains(c.excluded, *v); });
  return !c.values->empty();
}

/// False if the schemas list different values for a member that must be there, which tells many alternatives apart.
bool schema_reader::has_common_value(const schema_clause& c, const std::string& member) {
  if (c.objects.size() < 2) return true;
  std::optional<std::vector<const json*>> common;
  for (const json* object : c.objects) {
    const auto properties = object->find("properties");
    if (properties == object->end() || !properties->is_object()) continue;
    const auto found = properties->find(member);
    if (found == properties->end() || !found->is_object()) continue;
    const auto one = found->find("const");
    const auto some = found->find("enum");
    if (one == found->end() && (some == found->end() || !some->is_array())) continue;
    const auto list = pointers(one != found->end() ? *one : *some, one == found->end());
    (void)spend(1 + list.size() * (common ? common->size() : 1));
    if (!common) common = list;
    std::erase_if(*common, [&](const json* v) { return !contains(list, *v); });
  }
  return !common || !common->empty();
}

schema_reader::clauses schema_reader::any_of(clauses all, const std::vector<schema_term>& ways, std::uint32_t depth) {
  clauses out;
  // What is evaluated depends on which of them hold together.
  if (constexpr std::size_t together_max = 4; is_evaluating() && ways.size() <= together_max) {
    for (std::size_t subset = 1; subset < std::size_t{1} << ways.size() && !why_; ++subset) {
      auto some = all;
      for (std::size_t i = 0; i < ways.size(); ++i) {
        if ((subset >> i & 1) != 0) some = apply(std::move(some), ways[i], depth + 1);
      }
      out.insert(out.end(), std::make_move_iterator(some.begin()), std::make_move_iterator(some.end()));
    }
    return prune(std::move(out));
  }
  is_narrowed_ = is_narrowed_ || is_evaluating();
  for (const auto& way : ways) {
    auto some = apply(all, way, depth + 1);
    out.insert(out.end(), std::make_move_iterator(some.begin()), std::make_move_iterator(some.end()));
    if (why_ || out.size() > 4 * clauses_max) break;
  }
  return prune(std::move(out));
}

/// A value that matches one alternative must match none of the others, unless no value can match both.
schema_reader::clauses schema_reader::one_of(clauses all, const json& ways, std::uint32_t depth) {
  clauses out;
  const auto count = ways.size();
  std::vector<std::vector<bool>> may_meet(count, std::vector<bool>(count, false));
  for (std::size_t i = 0; i < count && !why_; ++i) {
    // Nothing is known where values that match have been left out.
    const bool was_narrowed = std::exchange(is_narrowed_, false);
    const auto mine = apply(all, {&ways[i]}, depth + 1);
    const bool is_mine_narrowed = is_narrowed_;
    for (std::size_t k = i + 1; k < count && !why_; ++k) {
      is_narrowed_ = is_mine_narrowed;
      const bool is_empty = apply(mine, {&ways[k]}, depth + 1).empty();
      may_meet[i][k] = may_meet[k][i] = !is_empty || is_narrowed_;
    }
    is_narrowed_ = was_narrowed;
  }
  for (std::size_t i = 0; i < count && !why_; ++i) {
    auto some = apply(all, {&ways[i]}, depth + 1);
    for (std::size_t k = 0; k < count && !why_; ++k) {
      if (may_meet[i][k]) some = apply(std::move(some), {&ways[k], true}, depth + 1);
    }
    out.insert(out.end(), std::make_move_iterator(some.begin()), std::make_move_iterator(some.end()));
  }
  return prune(std::move(out));
}

schema_reader::clauses schema_reader::apply(clauses all, const schema_term& one, std::uint32_t depth) {
  if (all.empty() || !spend(clause_steps * all.size())) return {};
  const json& schema = *one.schema;
  if (schema.is_boolean()) return schema.get<bool>() != one.is_negated ? all : clauses{};
  if (!schema.is_object()) {
    refuse(schema, "", "must be an object, true or false");
    return {};
  }
  if (depth > nesting_max) {
    refuse(schema, "", "references and combinations that never end, or are nested too deeply");
    return {};
  }
  const bool is_only_ref = document_.refs_stand_alone() && schema.contains("$ref");
  if (!one.is_negated) return apply_all(std::move(all), schema, is_only_ref, depth);
  ++negations_;
  auto denied = deny_any(std::move(all), schema, is_only_ref, depth);
  --negations_;
  return denied;
}

schema_reader::clauses schema_reader::deny_any(clauses all, const json& schema, bool is_only_ref, std::uint32_t depth) {
  clauses denied;
  for (const auto& [keyword, value] : schema.items()) {
    if ((is_only_ref && keyword != "$ref") || !asserts(keyword)) continue;
    if (!spend(1 + clause_steps * all.size())) return {};
    auto some = deny_keyword(all, schema, keyword, value, depth);
    denied.insert(denied.end(), std::make_move_iterator(some.begin()), std::make_move_iterator(some.end()));
  }
  return prune(std::move(denied));
}

schema_reader::clauses schema_reader::apply_all(clauses all, const json& schema, bool is_only_ref,
                                                std::uint32_t depth) {
  const bool leaves_rest = !is_only_ref && has_rest(schema);
  if (leaves_rest && negations_ > 0) {
    refuse(schema, "", "'unevaluatedProperties' and 'unevaluatedItems' are not supported within 'not'");
    return {};
  }
  const bool was_in_rest = is_in_rest_;
  if (leaves_rest) {
    is_in_rest_ = true;
    for (auto& c : all) c.open_rests.push_back(c.evaluated.size());
  }
  for (const auto& [keyword, value] : schema.items()) {
    if (is_only_ref && keyword != "$ref") continue;
    if ((!asserts(keyword) && !keyword.starts_with("redline:")) || is_in(keyword, rest_keywords)) continue;
    const bool is_within = spend(1 + clause_steps * all.size());
    all = is_within ? prune(apply_keyword(std::move(all), schema, keyword, value, depth)) : clauses{};
    if (all.empty()) break;
  }
  is_in_rest_ = was_in_rest;
  if (!leaves_rest) return all;
  for (auto& c : all) {
    const std::size_t first = c.open_rests.back(), last = c.evaluated.size();
    c.open_rests.pop_back();
    for (const auto keyword : rest_keywords) {
      const auto rest = schema.find(std::string(keyword));
      if (rest == schema.end()) continue;
      using enum schema_clause::evaluation::kind;
      const bool is_of_items = keyword == "unevaluatedItems";
      c.rests.push_back({{&*rest}, is_of_items, first, last});
      c.evaluated.push_back({is_of_items ? every_item : every_member, &*rest});
    }
  }
  return all;
}

schema_reader::clauses schema_reader::apply_keyword(clauses all, const json& schema, const std::string& keyword,
                                                    const json& value, std::uint32_t depth) {
  const auto each = [&all](auto change) {
    for (auto& c : all) change(c);
    return std::move(all);
  };
  const auto terms_of = [](const json& list) {
    std::vector<schema_term> terms;
    for (const auto& one : list) terms.push_back({&one});
    return terms;
  };
  const auto evaluate = [&](schema_clause& c, schema_clause::evaluation::kind what) {
    if (is_evaluating()) c.evaluated.push_back({what, &value});
  };
  using enum schema_clause::evaluation::kind;
  if (keyword.starts_with("redline:") || (document_.may_be_draft_3() && is_in(keyword, refused_in_draft_3)) ||
      ((document_.refs_stand_alone() || document_.may_be_draft_3()) && is_in(keyword, refused_up_to_draft_7))) {
    refuse(schema, "", "the keyword '" + keyword.substr(0, 64) + "' is not supported");
    return {};
  }
  if (is_in(keyword, references)) {
    const json* to = target(schema, keyword, value);
    return to == nullptr ? clauses{} : apply(std::move(all), {to}, depth + 1);
  }
  if (keyword == "allOf") {
    if (!is_list(schema, keyword, value)) return {};
    for (const auto& one : value) all = apply(std::move(all), {&one}, depth + 1);
    return all;
  }
  if (keyword == "anyOf") return !is_list(schema, keyword, value) ? clauses{} : any_of(all, terms_of(value), depth);
  if (keyword == "oneOf") return !is_list(schema, keyword, value) ? clauses{} : one_of(all, value, depth);
  if (keyword == "not") return apply(std::move(all), {&value, true}, depth + 1);
  if (keyword == "if") {
    const auto then = schema.find("then"), otherwise = schema.find("else");
    if (then == schema.end() && otherwise == schema.end() && !is_evaluating()) return all;
    auto yes = apply(all, {&value}, depth + 1);
    if (then != schema.end()) yes = apply(std::move(yes), {&*then}, depth + 1);
    auto no = apply(std::move(all), {&value, true}, depth + 1);
    if (otherwise != schema.end()) no = apply(std::move(no), {&*otherwise}, depth + 1);
    yes.insert(yes.end(), std::make_move_iterator(no.begin()), std::make_move_iterator(no.end()));
    return yes;
  }
  if (keyword == "type") {
    const auto types = types_named(schema, value);
    return each([&](schema_clause& c) { c.types &= types; });
  }
  if (keyword == "enum" || keyword == "const") {
    if (keyword == "enum" && (!value.is_array() || value.empty())) {
      refuse(schema, keyword, "must be a list of values");
      return {};
    }
    const auto list = pointers(value, keyword == "enum");
    return each([&](schema_clause& c) {
      if (!spend(list.size() * (c.values ? c.values->size() : 1))) return;
      if (!c.values)
        c.values = list;
      else
        std::erase_if(*c.values, [&](const json* v) { return !contains(list, *v); });
    });
  }
  // Numbers. In draft 4 an exclusive bound was a flag beside the bound.
  if (type_of_keyword(keyword) == number_values) {
    if (value.is_boolean() && keyword.starts_with("exclusive")) return all;
    if (!value.is_number()) {
      refuse(schema, keyword, "must be a number");
      return {};
    }
    const auto bound = decimal::read(value);
    const auto flag = [&](const char* name) {
      const auto found = schema.find(name);
      return found != schema.end() && *found == true;
    };
    return each([&](schema_clause& c) {
      if (keyword == "minimum") c.numbers.add_low(bound, flag("exclusiveMinimum"));
      if (keyword == "maximum") c.numbers.add_high(bound, flag("exclusiveMaximum"));
      if (keyword == "exclusiveMinimum") c.numbers.add_low(bound, true);
      if (keyword == "exclusiveMaximum") c.numbers.add_high(bound, true);
      auto& multiples = c.numbers.multiples;
      if (keyword == "multipleOf" && std::ranges::find(multiples, bound) == multiples.end()) multiples.push_back(bound);
    });
  }
  // Strings.
  if (keyword == "minLength" || keyword == "maxLength") {
    const auto count = count_of(schema, keyword, value);
    return each([&](schema_clause& c) {
      if (keyword == "minLength")
        c.length_min = std::max(c.length_min, count);
      else
        c.length_max = std::min(c.length_max, count);
    });
  }
  if (keyword == "pattern" || keyword == "format") {
    if (!value.is_string()) {
      refuse(schema, keyword, "must be a string");
      return {};
    }
    const auto& text = value.get_ref<const std::string&>();
    if (std::ranges::none_of(all, [](const auto& c) { return (c.types & string_values) != 0; })) return all;
    std::shared_ptr<const regex_dfa> texts;
    if (keyword == "pattern") {
      const auto format = schema.find("format");
      if (format != schema.end() && format->is_string() && is_pattern_of_format(format->get<std::string>(), text))
        return all;
      texts = find_texts(text, schema, keyword);
    } else {
      if (kind_of_format(text) == format_kind::unheard_of) return all;
      if (kind_of_format(text) == format_kind::unsupported) {
        refuse(schema, keyword, "'" + text + "' is not supported; expected " + std::string(known_formats));
        return {};
      }
      texts = format_texts(text);
    }
    return each([&](schema_clause& c) {
      if (texts) c.texts.push_back({texts, false});
    });
  }
  // Arrays.
  if (keyword == "minItems" || keyword == "maxItems") {
    const auto count = count_of(schema, keyword, value);
    return each([&](schema_clause& c) {
      if (keyword == "minItems")
        c.items_min = std::max(c.items_min, count);
      else
        c.items_max = std::min(c.items_max, count);
    });
  }
  if (keyword == "uniqueItems") {
    if (!value.is_boolean()) refuse(schema, keyword, "must be true or false");
    return each([&](schema_clause& c) { c.is_unique = c.is_unique || value == true; });
  }
  if (keyword == "items" || keyword == "prefixItems") {
    const bool is_all = keyword == "items" && (!value.is_array() || schema.contains("additionalItems"));
    return each([&](schema_clause& c) {
      if (c.arrays.empty() || c.arrays.back() != &schema) c.arrays.push_back(&schema);
      evaluate(c, is_all ? every_item : prefix);
    });
  }
  if (keyword == "contains") {
    is_narrowed_ = is_narrowed_ || is_evaluating();  // it also looks at the items that it finds
    const auto least = schema.find("minContains"), most = schema.find("maxContains");
    const schema_clause::containing what{{&value},
                                         least == schema.end() ? 1 : count_of(schema, "minContains", *least),
                                         most == schema.end() ? UINT32_MAX : count_of(schema, "maxContains", *most)};
    return each([&](schema_clause& c) {
      if (what.least > 0 || what.most != UINT32_MAX) c.contains.push_back(what);
    });
  }
  // Objects.
  if (keyword == "minProperties" || keyword == "maxProperties") {
    const auto count = count_of(schema, keyword, value);
    return each([&](schema_clause& c) {
      if (keyword == "minProperties")
        c.members_min = std::max(c.members_min, count);
      else
        c.members_max = std::min(c.members_max, count);
    });
  }
  if (keyword == "required") {
    if (value.is_boolean()) {  // of draft 3, where it stands in the member
      if (document_.may_be_draft_3()) refuse(schema, keyword, "must be a list of names");
      return all;
    }
    if (!value.is_array() || !std::ranges::all_of(value, [](const json& name) { return name.is_string(); })) {
      refuse(schema, keyword, "must be a list of names");
      return {};
    }
    if (!spend(value.size() * all.size())) return {};
    return each([&](schema_clause& c) {
      for (const auto& name : value) {
        if (!c.requires_member(name.get_ref<const std::string&>())) c.required.push_back(name.get<std::string>());
      }
    });
  }
  if (keyword == "properties" || keyword == "patternProperties" || keyword == "additionalProperties" ||
      keyword == "propertyNames") {
    if ((keyword == "properties" || keyword == "patternProperties") && !is_object(schema, keyword, value)) return {};
    return each([&](schema_clause& c) {
      if (c.objects.empty() || c.objects.back() != &schema) c.objects.push_back(&schema);
      if (keyword != "propertyNames")
        evaluate(c, keyword == "properties" ? named : keyword == "patternProperties" ? by_pattern : every_member);
    });
  }
  if (keyword == "dependencies" || keyword == "dependentRequired" || keyword == "dependentSchemas") {
    if (!is_object(schema, keyword, value)) return {};
    for (const auto& [name, needs] : value.items()) {
      // Without the member, or with what it needs. Values of other types have no members.
      clauses without = all;
      for (auto& c : without) c.forbidden.insert(name);
      for (auto& c : all) {
        c.types &= object_values;
        if (!c.requires_member(name)) c.required.push_back(name);
      }
      if (needs.is_array()) {
        for (auto& c : all) {
          for (const auto& need : needs) {
            if (need.is_string() && !c.requires_member(need.get_ref<const std::string&>()))
              c.required.push_back(need.get<std::string>());
          }
        }
      } else {
        all = apply(std::move(all), {&needs}, depth + 1);
      }
      all.insert(all.end(), std::make_move_iterator(without.begin()), std::make_move_iterator(without.end()));
      all = prune(std::move(all));
    }
    return all;
  }
  return all;  // an annotation, or a keyword that is read with another one
}

}  // namespace redline::grammar
