#include "runtime/grammar/json_schema.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "runtime/base/strict_json.hpp"
#include "runtime/grammar/constraint.hpp"
#include "runtime/grammar/json_automaton.hpp"
#include "runtime/grammar/rules_automaton.hpp"
#include "runtime/grammar/schema/schema_rules.hpp"
#include "runtime/grammar/schema/string_formats.hpp"
#include "runtime/grammar/syntax/steps.hpp"

namespace redline::grammar {
namespace {

using json = nlohmann::ordered_json;

constexpr std::size_t json_depth_max = 64;  // of the schema's text; values in enum and const may be deeper than schemas
constexpr std::size_t nodes_max = 2000;
constexpr std::size_t depth_max = 24;
constexpr std::uint32_t endless = 1000;  // height of a value that never ends
constexpr std::uint32_t whitespace_most = 64;

// Redline's own keyword, allowed only at the top level; see README.md.
constexpr const char* whitespace_keyword = "redline:blanks";

// Types of values, as bits of a set.
enum type_bit : std::uint32_t {
  null_type = 1,
  boolean_type = 2,
  object_type = 4,
  array_type = 8,
  string_type = 16,
  number_type = 32,
  integer_type = 64,
  all_types = 127,
};
constexpr std::pair<std::string_view, type_bit> type_names[] = {
    {"null", null_type},     {"boolean", boolean_type}, {"object", object_type},  {"array", array_type},
    {"string", string_type}, {"number", number_type},   {"integer", integer_type}};

/// Keywords that assert something about values of one type only.
constexpr std::pair<std::string_view, type_bit> assertions[] = {
    {"properties", object_type}, {"required", object_type},         {"additionalProperties", object_type},
    {"items", array_type},       {"minItems", array_type},          {"maxItems", array_type},
    {"uniqueItems", array_type}, {"minLength", string_type},        {"maxLength", string_type},
    {"pattern", string_type},    {"format", string_type},           {"minimum", number_type},
    {"maximum", number_type},    {"exclusiveMinimum", number_type}, {"exclusiveMaximum", number_type},
    {"multipleOf", number_type},
};

/// Keywords that name the schemas that a value must match. No assertion may accompany them except `type`.
constexpr const char* rules_alone[] = {"$ref", "anyOf", "oneOf"};

/// Keywords that assert something in some draft of JSON Schema and are not supported. All others are annotations.
constexpr std::string_view unsupported_keywords[] = {
    "allOf", "not", "if", "then", "else", "patternProperties", "propertyNames", "minProperties", "maxProperties",
    "dependencies", "dependentRequired", "dependentSchemas", "contains", "minContains", "maxContains", "prefixItems",
    "additionalItems", "unevaluatedItems", "unevaluatedProperties", "$dynamicRef", "$recursiveRef", "contentEncoding",
    "contentMediaType",
    // from draft 3
    "extends", "disallow", "divisibleBy"};

/// Whether a keyword with this value allows every value, so that it asserts nothing.
bool says_nothing(std::string_view keyword, const json& value) {
  if (keyword == "required") return value.is_array() && value.empty();
  if (keyword == "properties") return value.is_object() && value.empty();
  if (keyword == "items" || keyword == "additionalProperties") return value == true || value == json::object();
  if (keyword == "uniqueItems") return value == false;
  if (keyword == "minItems" || keyword == "minLength") return value.is_number() && value == 0;
  if (keyword == "format") {
    return value.is_string() && kind_of_format(value.get_ref<const std::string&>()) == format_kind::unheard_of;
  }
  return false;
}

std::uint32_t type_of(const json& value) {
  if (value.is_number_float()) {
    const auto number = value.get<double>();
    return number == std::floor(number) ? number_type | integer_type : number_type;
  }
  if (value.is_number()) return number_type | integer_type;
  if (value.is_object()) return object_type;
  if (value.is_array()) return array_type;
  if (value.is_string()) return string_type;
  return value.is_boolean() ? boolean_type : null_type;
}

byte_set to_byte_set(std::string_view characters) {
  byte_set set;
  for (const char c : characters) set.set(static_cast<std::uint8_t>(c));
  return set;
}

/// Builds the nodes of a schema; stops at the first error.
class compiler {
 public:
  compiler(const json& root, step_count& steps) : root_(root), steps_(steps) {
    nodes_.push_back({.kind = json_node::value_kind::any});
    nodes_.push_back({.kind = json_node::value_kind::literals, .texts = sorted_texts({"false", "null", "true"})});
  }

  result<std::shared_ptr<const byte_automaton>> run() {
    index_definitions();
    const std::uint32_t blanks =
        root_.is_object() ? read_count(root_, whitespace_keyword, "schema", json_automaton::whitespace_default)
                          : json_automaton::whitespace_default;
    if (blanks > whitespace_most)
      refuse("schema", "at most " + std::to_string(whitespace_most) + " blanks may stand between two tokens");
    const std::uint32_t first = compile_node(root_, "schema", 0);
    if (!why_) merge_alternatives();
    if (why_) return *why_;
    const auto users = find_users();
    find_first_bytes(users);
    find_heights(users);
    if (!why_ && nodes_[first].height >= json_automaton::frames_max) {
      refuse("schema", "asks for values that are too deep, or that never end");
    }
    if (!why_) check_choices();
    if (why_) return *why_;
    return std::shared_ptr<const byte_automaton>(std::make_shared<json_automaton>(std::move(nodes_), first, blanks));
  }

 private:
  std::uint32_t refuse(const std::string& path, const std::string& problem) {
    if (!why_) why_ = failure{errc::invalid_argument, path + ": " + problem};
    return 0;
  }

  /// Counts work. The limits on bytes and parts keep it linear; this one applies whatever a schema contains.
  void spend(std::size_t steps) {
    steps_.add(steps);
    if (steps_.is_over())
      refuse("schema", "takes more than " + std::to_string(steps_.limit()) +
                           " steps to compile; expected fewer or shorter names, values and references");
  }

  std::uint32_t add(json_node n) {
    if (nodes_.size() >= nodes_max) return refuse("schema", "has more than " + std::to_string(nodes_max) + " parts");
    nodes_.push_back(std::move(n));
    return static_cast<std::uint32_t>(nodes_.size() - 1);
  }

  std::uint32_t compile_node(const json& schema, const std::string& path, std::size_t depth) {
    if (!why_) spend(1 + path.size() / 16);
    if (why_) return 0;
    if (depth > depth_max) return refuse(path, "is nested deeper than " + std::to_string(depth_max));
    if (schema == true) return 0;
    if (!schema.is_object()) return refuse(path, "must be an object");
    // References inside of a part with an address of its own are relative to that address.
    const bool is_embedded = &schema != &root_ && (schema.contains("$id") || schema.contains("id"));
    embedded_ += is_embedded ? 1 : 0;
    const auto node = compile_rules(schema, path, depth);
    embedded_ -= is_embedded ? 1 : 0;
    return node;
  }

  std::uint32_t compile_rules(const json& schema, const std::string& path, std::size_t depth) {
    check_keywords(schema, path);
    const std::uint32_t types = read_types(schema, path);
    if (why_) return 0;
    for (const char* rule : rules_alone) {
      const auto found = schema.find(rule);
      if (found == schema.end()) continue;
      check_alone(schema, rule, path);
      const auto node = std::string_view(rule) == "$ref" ? reference(*found, path, depth)
                                                         : alternatives(*found, path + "." + rule, depth);
      if (std::string_view(rule) == "oneOf") exclusive_.push_back(node);
      return restricted(node, types, path);
    }
    if (schema.contains("const") || schema.contains("enum")) return literals(schema, types, path);
    return typed(types, schema, path, depth);
  }

  void check_keywords(const json& schema, const std::string& path) {
    for (const auto& [name, value] : schema.items()) {
      spend(1);
      const bool is_own = name.starts_with("redline:") && name != whitespace_keyword;
      if (is_own || std::ranges::find(unsupported_keywords, name) != std::end(unsupported_keywords)) {
        refuse(path, "the keyword '" + name.substr(0, 64) + "' is not supported");
        return;
      }
    }
    // From draft 4 on it is a list; in draft 3 it is a flag of a member.
    if (const auto required = schema.find("required"); required != schema.end() && !required->is_array())
      refuse(path + ".required", "must be a list of names");
  }

  /// The types that `type` allows; all types if it is absent.
  std::uint32_t read_types(const json& schema, const std::string& path) {
    const auto type = schema.find("type");
    if (type == schema.end()) return all_types;
    const bool is_list = type->is_array() && !type->empty();
    std::uint32_t set = 0;
    for (const auto& one : is_list ? *type : json::array({*type})) {
      if (!one.is_string()) return refuse(path + ".type", "must be a type's name or a list of them");
      const auto& name = one.get_ref<const std::string&>();
      const auto known = std::ranges::find(type_names, name, [](const auto& t) { return t.first; });
      if (known == std::end(type_names))
        return refuse(path + ".type", "'" + name.substr(0, 64) + "' is not a type of JSON Schema");
      set |= known->second;
    }
    return (set & number_type) != 0 ? set | integer_type : set;  // every integer is a number
  }

  /// Refuses assertions next to `rule`, because they would not be enforced.
  void check_alone(const json& schema, std::string_view rule, const std::string& path) {
    for (const auto& [name, value] : schema.items()) {
      const bool asserts =
          std::ranges::find(assertions, name, [](const auto& a) { return a.first; }) != std::end(assertions);
      const bool is_rule = name == "const" || name == "enum" ||
                           (name != rule && std::ranges::find(rules_alone, name) != std::end(rules_alone));
      if (is_rule || (asserts && !says_nothing(name, value))) {
        refuse(path, "the keyword '" + name + "' beside '" + std::string(rule) +
                         "' is not supported: write it into each of the schemas that '" + std::string(rule) +
                         "' names");
        return;
      }
    }
  }

  /// The values of a node that have one of these types.
  std::uint32_t restricted(std::uint32_t node, std::uint32_t types, const std::string& path) {
    if (types == all_types || why_) return node;
    const auto own = add({.kind = json_node::value_kind::choice, .choices = {node}});
    restrictions_[own] = types;
    paths_[own] = path;
    return own;
  }

  void index_definitions() {
    definitions_["#"] = &root_;
    if (!root_.is_object()) return;
    for (const char* section : {"$defs", "definitions"}) {
      const auto all = root_.find(section);
      if (all == root_.end() || !all->is_object()) continue;
      for (const auto& [name, schema] : all->items()) {
        spend(1);
        definitions_["#/" + std::string(section) + "/" + as_pointer(name)] = &schema;
      }
    }
  }

  /// A member's name as references contain it (RFC 6901, in a URI).
  static std::string as_pointer(std::string_view name) {
    std::string out;
    for (const char c : name) {
      out += c == '~' ? "~0" : c == '/' ? "~1" : c == '%' ? "%25" : std::string_view(&c, 1);
    }
    return out;
  }

  std::uint32_t reference(const json& ref, const std::string& path, std::size_t depth) {
    if (!ref.is_string()) return refuse(path + ".$ref", "must be a string");
    if (embedded_ > 0) return refuse(path + ".$ref", "is not supported inside of a part with an '$id' of its own");
    const auto name = ref.get<std::string>();
    if (const auto known = references_.find(name); known != references_.end()) return known->second;
    const auto found = definitions_.find(name);
    if (found == definitions_.end())
      return refuse(path + ".$ref", "'" + name.substr(0, 128) + "' is not in the schema's $defs");
    // Registered before it is built, so that it may refer to itself.
    const std::uint32_t index = add({.kind = json_node::value_kind::choice});
    references_[name] = index;
    const std::uint32_t node = compile_node(*found->second, name, depth + 1);
    if (!why_) nodes_[index].choices = {node};
    return index;
  }

  std::uint32_t alternatives(const json& any, const std::string& path, std::size_t depth) {
    if (!any.is_array() || any.empty()) return refuse(path, "must be a list of schemas");
    json_node choice{.kind = json_node::value_kind::choice};
    for (std::size_t i = 0; i < any.size(); ++i) {
      choice.choices.push_back(compile_node(any[i], path + "[" + std::to_string(i) + "]", depth + 1));
    }
    paths_[static_cast<std::uint32_t>(nodes_.size())] = path;
    return add(std::move(choice));
  }

  /// The values of `const` and `enum` that the other keywords allow.
  std::uint32_t literals(const json& schema, std::uint32_t types, const std::string& path) {
    const auto one = schema.find("const");
    const auto some = schema.find("enum");
    if (some != schema.end() && (!some->is_array() || some->empty()))
      return refuse(path + ".enum", "must be a list of values");
    std::vector<std::string> texts;
    std::uint32_t found_types = 0;
    for (const auto& v : some != schema.end() ? *some : json::array({*one})) {
      spend(1);
      if (one != schema.end() && v != *one) continue;
      if ((type_of(v) & types) == 0) continue;
      found_types |= type_of(v);
      texts.push_back(literal_of(v));
      spend(texts.back().size());
      if (why_) return 0;
    }
    const char* rule = some != schema.end() ? "enum" : "const";
    if (texts.empty()) return refuse(path + "." + rule, "none of the values is allowed by what stands beside it");
    for (const auto& [name, of] : assertions) {
      const auto found = schema.find(name);
      if (found != schema.end() && (found_types & of) != 0 && !says_nothing(name, *found)) {
        return refuse(path, "the keyword '" + std::string(name) + "' beside '" + rule +
                                "' is not supported: leave out the values that it forbids");
      }
    }
    return add_literals(std::move(texts));
  }

  /// The JSON text of a value. Zero has no sign, so that equal values begin with the same byte.
  static std::string literal_of(const json& value) {
    return value.is_number_float() && value == 0 ? "0.0" : value.dump();
  }

  std::uint32_t add_literals(std::vector<std::string> texts) {
    return add({.kind = json_node::value_kind::literals, .texts = sorted_texts(std::move(texts))});
  }

  /// Values of these types, each with the schema's assertions about its type.
  std::uint32_t typed(std::uint32_t types, const json& schema, const std::string& path, std::size_t depth) {
    if (types == all_types) {
      // A schema that lists members or items is meant for an object or an array; other values would be of no use.
      if (schema.contains("properties")) return object(schema, path, depth);
      if (schema.contains("items")) return array(schema, path, depth);
      const auto asserts = [&](const auto& a) {
        const auto found = schema.find(a.first);
        return found != schema.end() && !says_nothing(a.first, *found);
      };
      if (std::ranges::none_of(assertions, asserts)) return 0;
    }
    if ((types & number_type) != 0) types &= ~std::uint32_t{integer_type};
    json_node choice{.kind = json_node::value_kind::choice};
    for (const auto& [name, type] : type_names) {
      if ((types & type) != 0) choice.choices.push_back(of_type(type, schema, path, depth));
    }
    if (choice.choices.size() == 1 || why_) return choice.choices.front();
    paths_[static_cast<std::uint32_t>(nodes_.size())] = path + ".type";
    return add(std::move(choice));
  }

  std::uint32_t of_type(type_bit type, const json& schema, const std::string& path, std::size_t depth) {
    switch (type) {
      case object_type:
        return object(schema, path, depth);
      case array_type:
        return array(schema, path, depth);
      case string_type:
        return string(schema, path);
      case number_type:
      case integer_type:
        return number(type == integer_type, schema, path);
      case boolean_type:
        return add_literals({"false", "true"});
      default:
        return add_literals({"null"});
    }
  }

  std::uint32_t object(const json& schema, const std::string& path, std::size_t depth) {
    json_node n{.kind = json_node::value_kind::object};
    auto required = read_required(schema, path);
    if (why_) return 0;
    if (const auto members = schema.find("properties"); members != schema.end()) {
      if (!members->is_object()) return refuse(path + ".properties", "must be an object");
      std::vector<std::string> names;
      for (const auto& [name, value] : members->items()) {
        const auto node = compile_node(value, path + ".properties." + name.substr(0, 64), depth + 1);
        names.push_back(json(name).dump());
        n.members.push_back({.value = node, .required = required.erase(name) > 0});
        spend(1 + name.size());
        if (why_) return 0;
      }
      order_members(n, names);
    }
    for (const auto& name : required.empty() ? json() : schema["required"]) {
      const auto& missing = name.get_ref<const std::string&>();
      if (required.contains(missing))
        return refuse(path + ".required", "'" + missing.substr(0, 64) + "' is not among the properties");
    }
    const auto others = schema.find("additionalProperties");
    if (others != schema.end() && *others == false) {
      if (n.members.empty()) return add_literals({"{}"});
    } else if (others != schema.end() && n.members.empty()) {
      n.other = compile_node(*others, path + ".additionalProperties", depth + 1);
    }
    return add(std::move(n));
  }

  std::unordered_set<std::string> read_required(const json& schema, const std::string& path) {
    std::unordered_set<std::string> names;
    const auto list = schema.find("required");
    if (list == schema.end()) return names;
    const auto is_name = [](const json& name) { return name.is_string(); };
    if (!list->is_array() || !std::all_of(list->begin(), list->end(), is_name)) {
      refuse(path + ".required", "must be a list of names");
      return names;
    }
    for (const auto& name : *list) names.insert(name.get<std::string>());
    spend(list->size());
    return names;
  }

  /// `names` are those of the members, in their order.
  static void order_members(json_node& n, const std::vector<std::string>& names) {
    n.texts = sorted_texts(names);
    n.by_name.resize(names.size());
    auto last_choice = static_cast<std::uint32_t>(names.size() - 1);
    for (auto i = static_cast<std::uint32_t>(names.size()); i-- > 0;) {
      auto& m = n.members[i];
      if (m.required) last_choice = i;
      m.last_choice = last_choice;
      m.name = n.texts.find(names[i]);
      n.by_name[m.name] = i;
    }
  }

  std::uint32_t read_count(const json& schema, const char* name, const std::string& path, std::uint32_t otherwise) {
    const auto found = schema.find(name);
    if (found == schema.end()) return otherwise;
    const double count = found->is_number() ? found->get<double>() : -1;
    if (count < 0 || count > 1'000'000 || count != std::floor(count))
      return refuse(path + "." + name, "must be a count of at most 1000000");
    return static_cast<std::uint32_t>(count);
  }

  std::uint32_t string(const json& schema, const std::string& path) {
    json_node n{.kind = json_node::value_kind::string};
    n.characters_min = read_count(schema, "minLength", path, 0);
    n.characters_max = read_count(schema, "maxLength", path, UINT32_MAX);
    if (n.characters_min > n.characters_max) return refuse(path, "minLength is more than maxLength");
    const auto format = read_format(schema, path);
    if (why_) return 0;
    if (format || schema.contains("pattern")) {
      n.pattern = read_pattern(schema, format, path, {n.characters_min, n.characters_max});
      n.characters_min = 0;
      n.characters_max = UINT32_MAX;
    }
    return add(std::move(n));
  }

  /// The name of the string's format, if it asserts something.
  std::optional<std::string> read_format(const json& schema, const std::string& path) {
    const auto format = schema.find("format");
    if (format == schema.end()) return std::nullopt;
    if (!format->is_string()) {
      refuse(path + ".format", "must be a string");
      return std::nullopt;
    }
    const auto& name = format->get_ref<const std::string&>();
    switch (kind_of_format(name)) {
      case format_kind::known:
        return name;
      case format_kind::unsupported:
        refuse(path + ".format", "'" + name + "' is not supported; expected " + std::string(known_formats));
        break;
      case format_kind::unheard_of:
        break;
    }
    return std::nullopt;
  }

  std::shared_ptr<const regex_dfa> read_pattern(const json& schema, const std::optional<std::string>& format,
                                                const std::string& path, text_length length) {
    const bool is_counted = length.least > 0 || length.most != UINT32_MAX;
    const auto pattern = schema.find("pattern");
    if (pattern != schema.end() && !pattern->is_string()) return refuse_pattern(path + ".pattern", "must be a string");
    const std::string_view own = pattern == schema.end() ? std::string_view{} : pattern->get_ref<const std::string&>();
    if (format && (own.empty() || is_pattern_of_format(*format, own))) {
      if (!is_counted) return format_texts(*format);
      auto counted = compile_pattern(format_pattern(*format), regex_dfa::match::whole, length);
      if (!counted) return refuse_pattern(path, counted.error().context);
      return std::make_shared<const regex_dfa>(std::move(*counted));
    }
    auto made = compile_pattern(own, regex_dfa::match::anywhere, length);
    if (!made) return refuse_pattern(path + ".pattern", made.error().context);
    if (format) {
      step_count steps(regex_dfa::compile_steps_max);
      made = format_texts(*format)->both(*made, regex_dfa::states_max, steps);
      count_pattern(made, steps);
      if (!made) return refuse_pattern(path + ".pattern", "with the format '" + *format + "': " + made.error().context);
    }
    return std::make_shared<const regex_dfa>(std::move(*made));
  }

  std::shared_ptr<const regex_dfa> refuse_pattern(const std::string& path, const std::string& problem) {
    refuse(path, problem);
    return nullptr;
  }

  /// The limit on states applies to all patterns of a schema together. Their steps are counted apart from the schema's.
  result<regex_dfa> compile_pattern(std::string_view pattern, regex_dfa::match how, text_length length) {
    step_count steps(regex_dfa::compile_steps_max);
    auto made = regex_dfa::compile(
        pattern, {.how = how, .length = length, .is_json = true, .states_max = regex_dfa::states_max - pattern_states_},
        steps);
    count_pattern(made, steps);
    return made;
  }
  void count_pattern(result<regex_dfa>& made, const step_count& steps) {
    pattern_steps_.add(steps.taken());
    if (pattern_steps_.is_over()) made = failure{errc::invalid_argument, "the patterns take too long to compile"};
    if (made) pattern_states_ += std::min(made->states_count(), regex_dfa::states_max - pattern_states_);
  }

  /// `exclusive` is added to make the bound inclusive: 1 or -1 for an exclusive bound, 0 for an inclusive one.
  std::optional<std::int64_t> read_bound(const json& schema, const char* name, std::int64_t exclusive,
                                         const std::string& path) {
    const auto found = schema.find(name);
    if (found == schema.end()) return std::nullopt;
    const double value = found->is_number() ? found->get<double>() : 0.5;
    if (value != std::floor(value)) {
      refuse(path + "." + name, "must be a whole number");
      return std::nullopt;
    }
    // Numbers have fewer digits, so a bound beyond `most` is met either by all of them or by none.
    constexpr auto most = static_cast<double>(json_node::bound_max);
    return static_cast<std::int64_t>(std::clamp(value, -most - 1, most + 1)) + exclusive;
  }

  /// Whether a bound other than minimum 0 excludes some number that can be written: 15 digits, an exponent of two.
  static bool is_narrowed(const json& schema) {
    constexpr double beyond_all = 1e115;
    const double least = schema.value("minimum", 0.0);
    const double most = std::min(schema.value("maximum", beyond_all), schema.value("exclusiveMaximum", beyond_all));
    return most < beyond_all || (least != 0 && least > -beyond_all) ||
           schema.value("exclusiveMinimum", -beyond_all) > -beyond_all;
  }

  std::uint32_t number(bool integer, const json& schema, const std::string& path) {
    json_node n{.kind = integer ? json_node::value_kind::integer : json_node::value_kind::number};
    n.low = read_bound(schema, "minimum", 0, path);
    n.high = read_bound(schema, "maximum", 0, path);
    if (const auto above = read_bound(schema, "exclusiveMinimum", 1, path))
      n.low = std::max(*above, n.low.value_or(*above));
    if (const auto below = read_bound(schema, "exclusiveMaximum", -1, path))
      n.high = std::min(*below, n.high.value_or(*below));
    // Libraries write the smallest and largest integers that a double represents exactly. Those are not bounds.
    if (n.low && *n.low <= -json_node::bound_max) n.low.reset();
    if (n.high && *n.high >= json_node::bound_max) n.high.reset();
    if (const auto of = schema.find("multipleOf"); of != schema.end()) {
      if (!integer || !of->is_number_integer() || *of < 1 || *of > 1'000'000'000) {
        return refuse(path + ".multipleOf", "must be a whole number from 1 to 1000000000, of type integer");
      }
      n.multiple = of->get<std::int64_t>();
    }
    if (why_) return 0;
    if (!integer && is_narrowed(schema))
      return refuse(path, "type number supports 'minimum' 0 and no other bound; type integer supports all");
    const bool has_some = n.contains(false, 0) || [&n] {
      for (std::uint64_t digit = 1; digit <= 9; ++digit) {
        if (n.can_begin(false, digit) || n.can_begin(true, digit)) return true;
      }
      return false;
    }();
    if (n.is_bounded() && !has_some) return refuse(path, "no number is within the bounds");
    return add(std::move(n));
  }

  std::uint32_t array(const json& schema, const std::string& path, std::size_t depth) {
    json_node n{.kind = json_node::value_kind::array};
    n.items_min = read_count(schema, "minItems", path, 0);
    n.items_max = read_count(schema, "maxItems", path, UINT32_MAX);
    if (n.items_min > n.items_max) return refuse(path, "minItems is more than maxItems");
    if (const auto items = schema.find("items"); items != schema.end())
      n.other = compile_node(*items, path + ".items", depth + 1);
    if (const auto unique = schema.find("uniqueItems"); unique != schema.end()) {
      if (!unique->is_boolean()) return refuse(path + ".uniqueItems", "must be true or false");
      if (*unique) make_unique(n, path);
    }
    return add(std::move(n));
  }

  /// Only values that are known in advance can be compared with those that an array already contains.
  void make_unique(json_node& n, const std::string& path) {
    if (n.items_max <= 1 || why_) return;
    constexpr std::int64_t most = json_node::unique_max;
    if (const json_node item = nodes_[n.other]; item.kind == json_node::value_kind::integer && item.low && item.high &&
                                                (*item.high - *item.low) / item.multiple < most) {
      std::vector<std::string> texts;
      const auto rest = *item.low % item.multiple;
      const auto first = rest > 0 ? *item.low - rest + item.multiple : *item.low - rest;
      for (std::int64_t i = first; i <= *item.high; i += item.multiple) texts.push_back(std::to_string(i));
      n.other = add_literals(std::move(texts));
    }
    const json_node& item = nodes_[n.other];
    if (item.kind != json_node::value_kind::literals || item.texts.count() > most) {
      refuse(path + ".uniqueItems", "needs items of at most 32 values that are listed (enum), or maxItems 1");
      return;
    }
    std::vector<json> values;
    for (std::uint32_t i = 0; i < item.texts.count(); ++i) {
      values.push_back(json::parse(item.texts[i]));
      if (std::find(values.begin(), values.end() - 1, values.back()) != values.end() - 1) {
        refuse(path + ".items", "two of the values are equal, which uniqueItems cannot tell apart");
        return;
      }
    }
    n.is_unique = true;
    n.items_max = std::min(n.items_max, item.texts.count());
    if (n.items_min > n.items_max) refuse(path, "minItems is more than there are different values");
  }

  /// By node: the nodes whose value begins with its value or must contain it.
  [[nodiscard]] std::vector<std::vector<std::uint32_t>> find_users() {
    std::vector<std::vector<std::uint32_t>> users(nodes_.size());
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
      const json_node& n = nodes_[i];
      for (const auto c : n.choices) users[c].push_back(i);
      for (const auto& m : n.members) {
        if (m.required) users[m.value].push_back(i);
      }
      if (n.items_min > 0) users[n.other].push_back(i);
      spend(1 + n.choices.size() + n.members.size());
    }
    return users;
  }

  /// A choice begins like any of its alternatives. Choices may be cyclic, so each change is passed on to the nodes that
  /// it affects, at most once for each byte that values begin with.
  void find_first_bytes(const std::vector<std::vector<std::uint32_t>>& users) {
    std::vector<std::uint32_t> changed;
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
      nodes_[i].first = find_own_first_bytes(nodes_[i]);
      changed.push_back(i);
    }
    while (!changed.empty()) {
      const std::uint32_t from = changed.back();
      changed.pop_back();
      for (const auto to : users[from]) {
        spend(1);
        if (nodes_[to].kind != json_node::value_kind::choice) continue;
        const auto both = nodes_[to].first | nodes_[from].first;
        if (both == nodes_[to].first) continue;
        nodes_[to].first = both;
        changed.push_back(to);
      }
    }
  }

  [[nodiscard]] static byte_set find_own_first_bytes(const json_node& n) {
    byte_set set;
    switch (n.kind) {
      case json_node::value_kind::any:
        return to_byte_set("{[\"tfn") | find_first_of_number({});
      case json_node::value_kind::object:
        return to_byte_set("{");
      case json_node::value_kind::array:
        return to_byte_set("[");
      case json_node::value_kind::string:
        return to_byte_set("\"");
      case json_node::value_kind::number:
      case json_node::value_kind::integer:
        return find_first_of_number(n);
      case json_node::value_kind::literals:
        for (std::uint32_t i = 0; i < n.texts.count(); ++i) set.set(static_cast<std::uint8_t>(n.texts[i].front()));
        return set;
      case json_node::value_kind::choice:
        return set;
    }
    return set;
  }

  [[nodiscard]] static byte_set find_first_of_number(const json_node& n) {
    byte_set set = to_byte_set("-0123456789");
    if (n.low.value_or(-1) >= 0) set.reset('-');
    if (n.is_bounded()) {
      bool has_negative = false;
      for (std::uint64_t digit = 1; digit <= 9; ++digit) has_negative = has_negative || n.can_begin(true, digit);
      set.set('-', has_negative);
    }
    for (std::uint8_t digit = 0; n.is_bounded() && digit <= 9; ++digit) set.set('0' + digit, n.can_begin(false, digit));
    return set;
  }

  /// A container is one higher than the highest value that it must contain, and a choice is as high as its lowest
  /// alternative. So heights are found in ascending order, each once.
  void find_heights(const std::vector<std::vector<std::uint32_t>>& users) {
    std::vector<std::size_t> unknown(nodes_.size());  // by node: required values of unknown height
    std::deque<std::uint32_t> known;
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
      json_node& n = nodes_[i];
      unknown[i] = (n.items_min > 0 ? 1 : 0) + (n.kind == json_node::value_kind::choice ? 0 : n.choices.size()) +
                   static_cast<std::size_t>(
                       std::count_if(n.members.begin(), n.members.end(), [](auto& m) { return m.required; }));
      const bool is_low = unknown[i] == 0 && n.kind != json_node::value_kind::choice;
      n.height = is_low ? 1 : endless;
      if (is_low) known.push_back(i);
    }
    while (!known.empty()) {
      const std::uint32_t from = known.front();
      known.pop_front();
      for (const auto to : users[from]) {
        spend(1);
        json_node& n = nodes_[to];
        if (n.kind == json_node::value_kind::choice) {
          if (n.height != endless) continue;
          n.height = nodes_[from].height;
          known.push_front(to);
        } else if (--unknown[to] == 0) {
          n.height = std::min(nodes_[from].height + 1, endless);
          known.push_back(to);
        }
      }
    }
  }

  // Alternatives that begin alike.

  /// Merges alternatives of a choice that begin with the same character, if the text after it distinguishes them.
  void merge_alternatives() {
    const auto count = static_cast<std::uint32_t>(nodes_.size());
    for (std::uint32_t i = 0; i < count && !why_; ++i) {
      if (!restrictions_.contains(i)) continue;
      restricting_ = i;
      auto kept = flat_choices(i);
      if (kept.empty()) refuse(path_of(i), "no value has the type that stands beside it");
      nodes_[i].choices = std::move(kept);
    }
    for (const auto node : exclusive_) check_exclusive(node);
    for (std::uint32_t i = 0; i < count && !why_; ++i) {
      if (nodes_[i].kind != json_node::value_kind::choice || nodes_[i].choices.size() < 2) continue;
      std::vector<std::uint32_t> flat = flat_choices(i);
      merge_numbers(flat);
      merge_strings(flat);
      merge_objects(flat);
      if (!why_) nodes_[i].choices = std::move(flat);
    }
  }

  [[nodiscard]] std::string path_of(std::uint32_t choice) const {
    const auto known = paths_.find(choice);
    return known == paths_.end() ? "schema" : known->second;
  }

  /// The alternatives of a node. Those that are choices are replaced by their own alternatives.
  std::vector<std::uint32_t> flat_choices(std::uint32_t node) {
    std::vector<std::uint32_t> flat;
    std::unordered_set<std::uint32_t> seen;
    flatten(node, all_types, seen, flat);
    return flat;
  }
  void flatten(std::uint32_t node, std::uint32_t types, std::unordered_set<std::uint32_t>& seen,
               std::vector<std::uint32_t>& out) {
    spend(1);
    if (why_ || !seen.insert(node).second) return;
    if (nodes_[node].kind != json_node::value_kind::choice) {
      if (const auto kept = kept_of(node, types)) out.push_back(*kept);
      return;
    }
    if (const auto narrower = restrictions_.find(node); narrower != restrictions_.end()) types &= narrower->second;
    for (const auto c : std::vector<std::uint32_t>(nodes_[node].choices)) flatten(c, types, seen, out);
  }

  /// The node's values of these types; nothing if it has none.
  std::optional<std::uint32_t> kept_of(std::uint32_t node, std::uint32_t types) {
    if (types == all_types) return node;
    switch (nodes_[node].kind) {
      case json_node::value_kind::object:
        return (types & object_type) != 0 ? std::optional(node) : std::nullopt;
      case json_node::value_kind::array:
        return (types & array_type) != 0 ? std::optional(node) : std::nullopt;
      case json_node::value_kind::string:
        return (types & string_type) != 0 ? std::optional(node) : std::nullopt;
      case json_node::value_kind::integer:
        return (types & integer_type) != 0 ? std::optional(node) : std::nullopt;
      case json_node::value_kind::number:
        if ((types & number_type) != 0) return node;
        if ((types & integer_type) == 0) return std::nullopt;
        break;
      case json_node::value_kind::literals: {
        std::vector<std::string> texts;
        for (std::uint32_t i = 0; i < nodes_[node].texts.count(); ++i) {
          spend(1);
          if ((type_of(json::parse(nodes_[node].texts[i])) & types) != 0) texts.push_back(nodes_[node].texts[i]);
        }
        if (texts.size() == nodes_[node].texts.count()) return node;
        if (texts.empty()) return std::nullopt;
        return add_literals(std::move(texts));
      }
      case json_node::value_kind::any:
      case json_node::value_kind::choice:
        break;
    }
    refuse(path_of(restricting_),
           "a 'type' beside '$ref', 'anyOf' or 'oneOf' is supported where each of their schemas "
           "has one");
    return std::nullopt;
  }

  /// Handles oneOf as anyOf, and refuses it unless no value can match two alternatives.
  void check_exclusive(std::uint32_t node) {
    std::vector<std::vector<std::uint32_t>> sides;
    for (const auto c : std::vector<std::uint32_t>(nodes_[node].choices)) {
      sides.push_back(flat_choices(c));
      for (std::size_t earlier = 0; earlier + 1 < sides.size() && !why_; ++earlier) {
        for (const auto a : sides[earlier]) {
          for (const auto b : sides.back()) {
            spend(1);
            if (why_ || are_disjoint(a, b)) continue;
            refuse(path_of(node), "alternatives " + std::to_string(earlier) + " and " +
                                      std::to_string(sides.size() - 1) +
                                      " may both match a value; expected ones of different types, with different "
                                      "values, or objects that a required member tells apart (or anyOf)");
          }
        }
      }
    }
  }

  /// Whether no value that is written for one of them matches the other; false if there may be one.
  bool are_disjoint(std::uint32_t a, std::uint32_t b) {
    using enum json_node::value_kind;
    if (a == b || nodes_[a].kind == any || nodes_[b].kind == any) return false;
    if ((types_of(nodes_[a]) & types_of(nodes_[b])) == 0) return true;
    if (nodes_[a].kind == literals && nodes_[b].kind == literals) return have_no_common_value(nodes_[a], nodes_[b]);
    if (nodes_[a].kind == object && nodes_[b].kind == object) {
      return told_apart_by_values(a, b) || (has_name_that_lacks(a, b) && has_name_that_lacks(b, a));
    }
    const auto is_number = [](const json_node& n) { return n.kind == number || n.kind == integer; };
    if (!is_number(nodes_[a]) || !is_number(nodes_[b])) return false;
    const auto is_below = [](const json_node& low, const json_node& high) {
      return low.high && high.low && *low.high < *high.low;
    };
    return is_below(nodes_[a], nodes_[b]) || is_below(nodes_[b], nodes_[a]);
  }

  [[nodiscard]] static std::uint32_t types_of(const json_node& n) {
    switch (n.kind) {
      case json_node::value_kind::object:
        return object_type;
      case json_node::value_kind::array:
        return array_type;
      case json_node::value_kind::string:
        return string_type;
      case json_node::value_kind::number:
      case json_node::value_kind::integer:
        return number_type;
      case json_node::value_kind::literals: {
        std::uint32_t types = 0;
        for (std::uint32_t i = 0; i < n.texts.count(); ++i) {
          const char first = n.texts[i].front();
          types |= first == '{'                   ? object_type
                   : first == '['                 ? array_type
                   : first == '"'                 ? string_type
                   : first == 'n'                 ? null_type
                   : first == 't' || first == 'f' ? boolean_type
                                                  : number_type;
        }
        return types;
      }
      case json_node::value_kind::any:
      case json_node::value_kind::choice:
        break;
    }
    return all_types;
  }

  [[nodiscard]] bool have_no_common_value(const json_node& a, const json_node& b) {
    std::vector<json> values;
    spend(a.texts.count() + b.texts.count());
    for (std::uint32_t i = 0; i < a.texts.count(); ++i) {
      if (b.texts.contains(a.texts[i])) return false;
      values.push_back(json::parse(a.texts[i]));
    }
    // Numbers, and values that contain numbers, may be equal although their texts differ.
    std::erase_if(values, [](const json& v) { return !v.is_number() && !v.is_structured(); });
    for (std::uint32_t i = 0; i < b.texts.count() && !values.empty(); ++i) {
      const auto value = json::parse(b.texts[i]);
      spend(values.size());
      if (why_ || std::find(values.begin(), values.end(), value) != values.end()) return false;
    }
    return true;
  }

  /// Whether both require some member and have no value of it in common.
  [[nodiscard]] bool told_apart_by_values(std::uint32_t a, std::uint32_t b) {
    for (std::size_t m = 0; m < nodes_[a].members.size() && !why_; ++m) {
      const std::string name = name_of(nodes_[a], m);
      const json_node* mine = values_of(nodes_[a], name);
      const json_node* its = mine == nullptr ? nullptr : values_of(nodes_[b], name);
      if (its != nullptr && have_no_common_value(*mine, *its)) return true;
    }
    return false;
  }
  /// Whether `has` requires a member that `lacks` does not declare. Objects are written with declared members only.
  [[nodiscard]] bool has_name_that_lacks(std::uint32_t has, std::uint32_t lacks) {
    const json_node& one = nodes_[has];
    spend(one.members.size());
    if (one.members.empty() || nodes_[lacks].members.empty()) return false;
    for (std::size_t m = 0; m < one.members.size(); ++m) {
      if (one.members[m].required && !nodes_[lacks].texts.contains(name_of(one, m))) return true;
    }
    return false;
  }

  /// Drops integers where any number is allowed, as every integer is a number.
  void merge_numbers(std::vector<std::uint32_t>& of) const {
    const auto is = [this](json_node::value_kind kind) {
      return [this, kind](std::uint32_t n) { return nodes_[n].kind == kind; };
    };
    const auto number = std::find_if(of.begin(), of.end(), is(json_node::value_kind::number));
    if (number == of.end() || nodes_[*number].low) return;
    std::erase_if(of, is(json_node::value_kind::integer));
  }

  /// Joins the literals, and drops those that are strings where any string is allowed.
  void merge_strings(std::vector<std::uint32_t>& of) {
    std::vector<std::string> texts;
    std::size_t lists = 0;
    bool has_string = false;
    for (const auto c : of) {
      const json_node& n = nodes_[c];
      has_string = has_string || (n.kind == json_node::value_kind::string && !n.pattern && n.characters_min == 0 &&
                                  n.characters_max == UINT32_MAX);
      if (n.kind != json_node::value_kind::literals) continue;
      ++lists;
      for (std::uint32_t t = 0; t < n.texts.count(); ++t) texts.push_back(n.texts[t]);
      spend(n.texts.count());
    }
    const auto is_string = [](const std::string& text) { return text.starts_with('"'); };
    const bool absorbs = has_string && std::any_of(texts.begin(), texts.end(), is_string);
    if (why_ || (lists < 2 && !absorbs)) return;
    if (absorbs) std::erase_if(texts, is_string);
    std::erase_if(of, [this](std::uint32_t c) { return nodes_[c].kind == json_node::value_kind::literals; });
    if (!texts.empty()) of.push_back(add_literals(std::move(texts)));
  }

  /// Merges objects that a member distinguishes: one that each requires with its own values, as in discriminated
  /// unions, or the first one, by its name.
  void merge_objects(std::vector<std::uint32_t>& of) {
    std::vector<std::uint32_t> objects;
    for (const auto c : of) {
      if (nodes_[c].kind == json_node::value_kind::object && !nodes_[c].members.empty()) objects.push_back(c);
    }
    if (why_ || objects.size() < 2) return;
    auto merged = merge_by_value(objects);
    if (!merged && !why_) merged = merge_by_first_name(objects);
    if (!merged || why_) return;
    std::erase_if(of, [&](std::uint32_t c) { return std::find(objects.begin(), objects.end(), c) != objects.end(); });
    of.push_back(*merged);
  }

  [[nodiscard]] const std::string& name_of(const json_node& n, std::size_t member) const {
    return n.texts[n.members[member].name];
  }
  /// The literals that the member's value must be one of; null if it may be another value or missing.
  [[nodiscard]] const json_node* values_of(const json_node& n, const std::string& name) {
    spend(1 + n.members.size());
    for (std::size_t m = 0; m < n.members.size(); ++m) {
      if (name_of(n, m) != name || !n.members[m].required) continue;
      const json_node* value = &nodes_[n.members[m].value];
      for (int i = 0; i < 8 && value->kind == json_node::value_kind::choice && value->choices.size() == 1; ++i) {
        value = &nodes_[value->choices.front()];
      }
      if (value->kind == json_node::value_kind::literals) return value;
    }
    return nullptr;
  }

  std::optional<std::uint32_t> merge_by_value(const std::vector<std::uint32_t>& objects) {
    const json_node first = nodes_[objects.front()];
    for (std::size_t m = 0; m < first.members.size() && !why_; ++m) {
      const std::string name = name_of(first, m);
      std::map<std::string, std::uint32_t> by_text;  // index of the object that each value selects
      bool tells = true;
      for (std::size_t o = 0; o < objects.size() && tells && !why_; ++o) {
        const json_node* values = values_of(nodes_[objects[o]], name);
        tells = values != nullptr;
        for (std::uint32_t t = 0; tells && t < values->texts.count(); ++t) {
          spend(1);
          tells = by_text.emplace(values->texts[t], static_cast<std::uint32_t>(o)).second;
        }
      }
      if (tells && !why_) return join_by_value(objects, name, by_text);
    }
    return std::nullopt;
  }

  std::uint32_t join_by_value(const std::vector<std::uint32_t>& objects, const std::string& name,
                              const std::map<std::string, std::uint32_t>& by_text) {
    json_node joined{.kind = json_node::value_kind::object};
    for (const auto o : objects) {
      if (why_) return 0;
      joined.choices.push_back(add(with_first(nodes_[o], name)));
    }
    std::vector<std::string> texts;
    for (const auto& [text, object] : by_text) texts.push_back(text);
    json_node values{.kind = json_node::value_kind::literals, .texts = sorted_texts(std::move(texts))};
    for (std::uint32_t t = 0; t < values.texts.count(); ++t) {
      values.goes_on.push_back(joined.choices[by_text.at(values.texts[t])]);
    }
    const auto value = add(std::move(values));
    joined.members = {{.value = value, .required = true}};
    order_members(joined, {name});
    return add(std::move(joined));
  }

  /// The same object with this member in front of the others.
  [[nodiscard]] json_node with_first(const json_node& n, const std::string& name) {
    spend(n.members.size());
    json_node out{.kind = json_node::value_kind::object};
    std::vector<std::string> names;
    for (const bool is_front : {true, false}) {
      for (std::size_t m = 0; m < n.members.size(); ++m) {
        if ((name_of(n, m) == name) != is_front) continue;
        names.push_back(name_of(n, m));
        out.members.push_back({.value = n.members[m].value, .required = n.members[m].required});
      }
    }
    order_members(out, names);
    return out;
  }

  std::optional<std::uint32_t> merge_by_first_name(const std::vector<std::uint32_t>& objects) {
    json_node joined{.kind = json_node::value_kind::object};
    std::vector<std::string> names;
    for (const auto o : objects) {
      const json_node& n = nodes_[o];
      spend(1);
      if (!n.members.front().required) return std::nullopt;
      if (std::find(names.begin(), names.end(), name_of(n, 0)) != names.end()) return std::nullopt;
      names.push_back(name_of(n, 0));
      joined.choices.push_back(o);
      joined.members.push_back({.value = n.members.front().value, .goes_on = o});
    }
    // One of the members must be chosen.
    joined.members.back().required = true;
    order_members(joined, names);
    return add(std::move(joined));
  }

  void check_choices() {
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i].kind != json_node::value_kind::choice) continue;
      byte_set seen;
      for (const auto c : nodes_[i].choices) {
        if ((seen & nodes_[c].first).any()) {
          refuse(path_of(i),
                 "alternatives that begin with the same character are supported where they are objects that a "
                 "required member with different values, or the name of the first one, tells apart");
          return;
        }
        seen |= nodes_[c].first;
      }
    }
  }

  const json& root_;
  std::vector<json_node> nodes_;
  step_count& steps_;
  std::unordered_map<std::string, const json*> definitions_;  // by the text of $ref
  std::map<std::string, std::uint32_t> references_;
  std::vector<std::uint32_t> exclusive_;                           // choices made from oneOf
  std::unordered_map<std::uint32_t, std::uint32_t> restrictions_;  // the types that choices are restricted to
  std::uint32_t restricting_ = 0;                                  // the choice whose restriction is being applied
  std::uint32_t embedded_ = 0;                                     // enclosing parts with an address of their own
  std::uint32_t pattern_states_ = 0;
  step_count pattern_steps_{2'000'000};         // about 20 ms
  std::map<std::uint32_t, std::string> paths_;  // of choices, for error messages
  std::optional<failure> why_;
};

}  // namespace

result<std::shared_ptr<const byte_automaton>> compile_schema(std::string_view schema, step_count& steps,
                                                             step_count* rules_steps) {
  if (schema.size() > schema_bytes_max) {
    return failure{errc::invalid_argument, "schema: expected at most " + std::to_string(schema_bytes_max) +
                                               " bytes, found " + std::to_string(schema.size())};
  }
  const auto root = parse_json<json>(schema, {.depth_max = json_depth_max});
  if (!root) return failure{errc::invalid_argument, "schema: " + root.error().context};
  auto made = compiler(*root, steps).run();
  if (made || rules_steps == nullptr || steps.is_over()) return made;
  const auto blanks = root->is_object() ? root->find(whitespace_keyword) : root->end();
  std::uint32_t blanks_max = json_automaton::whitespace_default;
  if (root->is_object() && blanks != root->end()) {
    if (!blanks->is_number_unsigned() || *blanks > whitespace_most) return made;
    blanks_max = blanks->get<std::uint32_t>();
  }
  REDLINE_TRY_ASSIGN(auto rules, write_schema_rules(*root, blanks_max, *rules_steps));
  REDLINE_TRY_ASSIGN(auto automaton, rules_automaton::compile(std::move(rules), *rules_steps));
  return std::shared_ptr<const byte_automaton>(std::move(automaton));
}

result<std::shared_ptr<const byte_automaton>> compile_schema(std::string_view schema, step_count& steps) {
  step_count rules_steps(schema_rules_steps_max);
  return compile_schema(schema, steps, &rules_steps);
}

result<std::shared_ptr<const byte_automaton>> compile_schema(std::string_view schema) {
  step_count steps(schema_steps_max);
  return compile_schema(schema, steps);
}

}  // namespace redline::grammar
