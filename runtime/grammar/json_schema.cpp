#include "runtime/grammar/json_schema.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "runtime/grammar/constraint.hpp"
#include "runtime/grammar/json_automaton.hpp"

namespace redline::grammar {
namespace {

using json = nlohmann::ordered_json;

constexpr std::size_t nodes_max = 2000;
constexpr std::size_t depth_max = 24;
constexpr std::uint32_t endless = 1000;  // height of a value that never ends

byte_set to_byte_set(std::string_view characters) {
  byte_set set;
  for (const char c : characters) set.set(static_cast<std::uint8_t>(c));
  return set;
}

/// Builds the nodes of a schema; stops at the first error.
class compiler {
 public:
  explicit compiler(const json& root) : root_(root) {
    nodes_.push_back({.kind = json_node::value_kind::any});
    nodes_.push_back({.kind = json_node::value_kind::literals, .literals = {"false", "null", "true"}});
  }

  result<std::shared_ptr<const byte_automaton>> run() {
    const std::uint32_t first = compile_node(root_, "schema", 0);
    if (!why_) find_firsts_and_heights();
    if (!why_ && nodes_[first].height >= json_automaton::frames_max) {
      refuse("schema", "asks for values that are too deep, or that never end");
    }
    if (!why_) check_choices();
    if (why_) return *why_;
    return std::shared_ptr<const byte_automaton>(std::make_shared<json_automaton>(std::move(nodes_), first));
  }

 private:
  std::uint32_t refuse(const std::string& path, const std::string& problem) {
    if (!why_) why_ = failure{errc::invalid_argument, path + ": " + problem};
    return 0;
  }

  std::uint32_t add(json_node n) {
    if (nodes_.size() >= nodes_max) return refuse("schema", "has more than " + std::to_string(nodes_max) + " parts");
    nodes_.push_back(std::move(n));
    return static_cast<std::uint32_t>(nodes_.size() - 1);
  }

  std::uint32_t compile_node(const json& schema, const std::string& path, std::size_t depth) {
    if (why_) return 0;
    if (depth > depth_max) return refuse(path, "is nested deeper than " + std::to_string(depth_max));
    if (schema == true) return 0;
    if (!schema.is_object()) return refuse(path, "must be an object");
    check_keywords(schema, path);
    if (why_) return 0;
    if (const auto ref = schema.find("$ref"); ref != schema.end()) return reference(*ref, path, depth);
    if (const auto any = schema.find("anyOf"); any != schema.end()) return alternatives(*any, path + ".anyOf", depth);
    // Alternatives differ in their first byte, so no value matches two of them: oneOf is anyOf.
    if (const auto any = schema.find("oneOf"); any != schema.end()) return alternatives(*any, path + ".oneOf", depth);
    if (const auto one = schema.find("const"); one != schema.end())
      return literals(json::array({*one}), path + ".const");
    if (const auto some = schema.find("enum"); some != schema.end()) return literals(*some, path + ".enum");
    const auto type = schema.find("type");
    if (type == schema.end()) {
      if (schema.contains("properties")) return object(schema, path, depth);
      if (schema.contains("items")) return array(schema, path, depth);
      return 0;
    }
    if (type->is_string()) return typed(type->get<std::string>(), schema, path, depth);
    if (!type->is_array() || type->empty()) return refuse(path + ".type", "must be a type's name or a list of them");
    json_node choice{.kind = json_node::value_kind::choice};
    std::vector<std::string> names;
    for (const auto& t : *type) {
      if (!t.is_string()) return refuse(path + ".type", "must be a type's name or a list of them");
      names.push_back(t.get<std::string>());
    }
    const bool numbers = std::find(names.begin(), names.end(), "number") != names.end();
    for (const auto& name : names) {
      if (name == "integer" && numbers) continue;  // every integer is a number
      choice.choices.push_back(typed(name, schema, path, depth));
    }
    paths_[static_cast<std::uint32_t>(nodes_.size())] = path + ".type";
    return add(std::move(choice));
  }

  void check_keywords(const json& schema, const std::string& path) {
    static constexpr std::string_view known[] = {"type", "properties", "required", "additionalProperties", "items",
                                                 "minItems", "maxItems", "enum", "const", "anyOf", "oneOf", "minLength",
                                                 "maxLength", "minimum", "maximum", "exclusiveMinimum",
                                                 "exclusiveMaximum", "$ref", "$defs", "definitions",
                                                 // These only describe.
                                                 "title", "description", "default", "examples", "$schema", "$id",
                                                 "$comment", "deprecated", "readOnly", "writeOnly"};
    for (const auto& [name, value] : schema.items()) {
      if (std::find(std::begin(known), std::end(known), name) == std::end(known)) {
        refuse(path, "the keyword '" + name.substr(0, 64) + "' is not supported");
        return;
      }
    }
  }

  std::uint32_t reference(const json& ref, const std::string& path, std::size_t depth) {
    if (!ref.is_string()) return refuse(path + ".$ref", "must be a string");
    const auto name = ref.get<std::string>();
    if (const auto known = references_.find(name); known != references_.end()) return known->second;
    const json* target = name == "#" ? &root_ : nullptr;
    for (const std::string_view section : {"$defs", "definitions"}) {
      const std::string prefix = "#/" + std::string(section) + "/";
      if (!name.starts_with(prefix) || !root_.contains(section) || !root_[section].is_object()) continue;
      const auto found = root_[section].find(name.substr(prefix.size()));
      if (found != root_[section].end()) target = &*found;
    }
    if (target == nullptr) return refuse(path + ".$ref", "'" + name.substr(0, 128) + "' is not in the schema's $defs");
    // Registered before it is built, so that it may refer to itself.
    const std::uint32_t index = add({.kind = json_node::value_kind::choice});
    references_[name] = index;
    const std::uint32_t node = compile_node(*target, name, depth + 1);
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

  std::uint32_t literals(const json& values, const std::string& path) {
    if (!values.is_array() || values.empty()) return refuse(path, "must be a list of values");
    json_node n{.kind = json_node::value_kind::literals};
    for (const auto& v : values) {
      try {
        n.literals.push_back(v.dump());
      } catch (const json::exception&) {
        return refuse(path, "holds a string that is not UTF-8");
      }
    }
    std::sort(n.literals.begin(), n.literals.end());
    n.literals.erase(std::unique(n.literals.begin(), n.literals.end()), n.literals.end());
    return add(std::move(n));
  }

  std::uint32_t typed(const std::string& type, const json& schema, const std::string& path, std::size_t depth) {
    if (type == "object") return object(schema, path, depth);
    if (type == "array") return array(schema, path, depth);
    if (type == "string") return string(schema, path);
    if (type == "number" || type == "integer") return number(type == "integer", schema, path);
    if (type == "boolean") return add({.kind = json_node::value_kind::literals, .literals = {"false", "true"}});
    if (type == "null") return add({.kind = json_node::value_kind::literals, .literals = {"null"}});
    return refuse(path + ".type", "'" + type.substr(0, 64) + "' is not a type of JSON Schema");
  }

  std::uint32_t object(const json& schema, const std::string& path, std::size_t depth) {
    json_node n{.kind = json_node::value_kind::object};
    std::vector<std::string> required;
    if (const auto list = schema.find("required"); list != schema.end()) {
      if (!list->is_array()) return refuse(path + ".required", "must be a list of names");
      for (const auto& name : *list) {
        if (!name.is_string()) return refuse(path + ".required", "must be a list of names");
        required.push_back(name.get<std::string>());
      }
    }
    if (const auto members = schema.find("properties"); members != schema.end()) {
      if (!members->is_object()) return refuse(path + ".properties", "must be an object");
      for (const auto& [name, value] : members->items()) {
        const auto at = std::find(required.begin(), required.end(), name);
        const auto node = compile_node(value, path + ".properties." + name.substr(0, 64), depth + 1);
        if (why_) return 0;
        n.members.push_back({json(name).dump(), node, at != required.end()});
        if (at != required.end()) required.erase(at);
      }
    }
    if (!required.empty())
      return refuse(path + ".required", "'" + required.front().substr(0, 64) + "' is not among the properties");
    const auto others = schema.find("additionalProperties");
    if (others != schema.end() && *others == false) {
      if (n.members.empty()) return literals(json::array({json::object()}), path);
    } else if (others != schema.end() && n.members.empty()) {
      n.other = compile_node(*others, path + ".additionalProperties", depth + 1);
    }
    return add(std::move(n));
  }

  std::uint32_t read_count(const json& schema, const char* name, const std::string& path, std::uint32_t otherwise) {
    const auto found = schema.find(name);
    if (found == schema.end()) return otherwise;
    if (!found->is_number_unsigned() || found->get<std::uint64_t>() > 1'000'000) {
      return refuse(path + "." + name, "must be a count of at most 1000000");
    }
    return found->get<std::uint32_t>();
  }

  std::uint32_t string(const json& schema, const std::string& path) {
    json_node n{.kind = json_node::value_kind::string};
    n.characters_min = read_count(schema, "minLength", path, 0);
    n.characters_max = read_count(schema, "maxLength", path, UINT32_MAX);
    if (n.characters_min > n.characters_max) return refuse(path, "minLength is more than maxLength");
    return add(std::move(n));
  }

  /// exclusive: added to an exclusive bound to get the inclusive one: 1, -1, or 0 for an inclusive bound.
  std::optional<std::int64_t> read_bound(const json& schema, const char* name, std::int64_t exclusive,
                                         const std::string& path) {
    const auto found = schema.find(name);
    if (found == schema.end()) return std::nullopt;
    const double value = found->is_number() ? found->get<double>() : 0.5;
    if (value != std::floor(value) || std::abs(value) >= json_node::bound_max) {
      refuse(path + "." + name,
             "must be a whole number with an absolute value below " + std::to_string(json_node::bound_max));
      return std::nullopt;
    }
    return static_cast<std::int64_t>(value) + exclusive;
  }

  std::uint32_t number(bool integer, const json& schema, const std::string& path) {
    json_node n{.kind = integer ? json_node::value_kind::integer : json_node::value_kind::number};
    n.low = read_bound(schema, "minimum", 0, path);
    n.high = read_bound(schema, "maximum", 0, path);
    if (const auto above = read_bound(schema, "exclusiveMinimum", 1, path))
      n.low = std::max(*above, n.low.value_or(*above));
    if (const auto below = read_bound(schema, "exclusiveMaximum", -1, path))
      n.high = std::min(*below, n.high.value_or(*below));
    if (!integer && (n.high || n.low.value_or(0) != 0 || schema.contains("exclusiveMinimum"))) {
      return refuse(path, "type number supports 'minimum' 0 and no other bound; type integer supports all");
    }
    if (n.low && n.high && *n.low > *n.high) return refuse(path, "no number is within the bounds");
    return add(std::move(n));
  }

  std::uint32_t array(const json& schema, const std::string& path, std::size_t depth) {
    json_node n{.kind = json_node::value_kind::array};
    n.items_min = read_count(schema, "minItems", path, 0);
    n.items_max = read_count(schema, "maxItems", path, UINT32_MAX);
    if (n.items_min > n.items_max) return refuse(path, "minItems is more than maxItems");
    if (const auto items = schema.find("items"); items != schema.end())
      n.other = compile_node(*items, path + ".items", depth + 1);
    return add(std::move(n));
  }

  /// Computes `first` and `height` of all nodes, which depend on each other through references, as a fixed point.
  void find_firsts_and_heights() {
    for (auto& n : nodes_) n.height = endless;
    for (bool changed = true; changed;) {
      changed = false;
      for (auto& n : nodes_) {
        const auto first = find_first_bytes(n);
        const auto height = find_height(n);
        changed = changed || first != n.first || height != n.height;
        n.first = first;
        n.height = height;
      }
    }
  }

  [[nodiscard]] byte_set find_first_bytes(const json_node& n) const {
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
        for (const auto& l : n.literals) set.set(static_cast<std::uint8_t>(l.front()));
        return set;
      case json_node::value_kind::choice:
        for (const auto c : n.choices) set |= nodes_[c].first;
        return set;
    }
    return set;
  }

  [[nodiscard]] static byte_set find_first_of_number(const json_node& n) {
    byte_set set = to_byte_set("-0123456789");
    if (n.low.value_or(-1) >= 0) set.reset('-');
    for (std::uint8_t digit = 0; n.is_bounded() && digit <= 9; ++digit) set.set('0' + digit, n.can_begin(false, digit));
    return set;
  }

  [[nodiscard]] std::uint32_t find_height(const json_node& n) const {
    std::uint32_t height = 1;
    switch (n.kind) {
      case json_node::value_kind::object:
        for (const auto& m : n.members) {
          if (m.required) height = std::max(height, nodes_[m.value].height + 1);
        }
        break;
      case json_node::value_kind::array:
        if (n.items_min > 0) height = nodes_[n.other].height + 1;
        break;
      case json_node::value_kind::choice:
        height = endless;
        for (const auto c : n.choices) height = std::min(height, nodes_[c].height);
        break;
      default:
        break;
    }
    return std::min(height, endless);
  }

  void check_choices() {
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
      byte_set seen;
      for (const auto c : nodes_[i].choices) {
        if ((seen & nodes_[c].first).any()) {
          refuse(paths_.contains(i) ? paths_[i] : "schema",
                 "alternatives that begin with the same character are not supported");
          return;
        }
        seen |= nodes_[c].first;
      }
    }
  }

  const json& root_;
  std::vector<json_node> nodes_;
  std::map<std::string, std::uint32_t> references_;
  std::map<std::uint32_t, std::string> paths_;  // of choices, for error messages
  std::optional<failure> why_;
};

}  // namespace

result<std::shared_ptr<const byte_automaton>> compile_schema(std::string_view schema) {
  if (schema.size() > schema_bytes_max) {
    return failure{errc::invalid_argument, "schema: wanted at most " + std::to_string(schema_bytes_max) +
                                               " bytes, found " + std::to_string(schema.size())};
  }
  const json root = json::parse(schema, nullptr, false);
  if (root.is_discarded()) return failure{errc::invalid_argument, "schema: is not valid JSON"};
  return compiler(root).run();
}

}  // namespace redline::grammar
