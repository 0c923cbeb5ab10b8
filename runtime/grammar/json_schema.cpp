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

#include "runtime/grammar/constraint.hpp"
#include "runtime/grammar/json_automaton.hpp"
#include "runtime/grammar/steps.hpp"
#include "runtime/json/strict_json.hpp"

namespace redline::grammar {
namespace {

using json = nlohmann::ordered_json;

constexpr std::size_t json_depth_max = 64;  // of the schema's text; enum and const may be deeper than schemas
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
  compiler(const json& root, std::size_t steps_max) : root_(root), steps_max_(steps_max), steps_begin_(steps_taken) {
    nodes_.push_back({.kind = json_node::value_kind::any});
    nodes_.push_back({.kind = json_node::value_kind::literals, .texts = sorted_texts({"false", "null", "true"})});
  }

  result<std::shared_ptr<const byte_automaton>> run() {
    index_definitions();
    const std::uint32_t first = compile_node(root_, "schema", 0);
    if (why_) return *why_;
    const auto users = find_users();
    find_first_bytes(users);
    find_heights(users);
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

  /// Counts work. Limits of bytes and parts keep it linear; this one holds whatever a schema does.
  void spend(std::size_t steps) {
    steps_taken += steps;
    if (steps_taken - steps_begin_ > steps_max_)
      refuse("schema", "takes more than " + std::to_string(steps_max_) +
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
      spend(1);
      if (std::find(std::begin(known), std::end(known), name) == std::end(known)) {
        refuse(path, "the keyword '" + name.substr(0, 64) + "' is not supported");
        return;
      }
    }
  }

  void index_definitions() {
    definitions_["#"] = &root_;
    if (!root_.is_object()) return;
    for (const char* section : {"$defs", "definitions"}) {
      const auto all = root_.find(section);
      if (all == root_.end() || !all->is_object()) continue;
      for (const auto& [name, schema] : all->items()) {
        spend(1);
        definitions_["#/" + std::string(section) + "/" + name] = &schema;
      }
    }
  }

  std::uint32_t reference(const json& ref, const std::string& path, std::size_t depth) {
    if (!ref.is_string()) return refuse(path + ".$ref", "must be a string");
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

  std::uint32_t literals(const json& values, const std::string& path) {
    if (!values.is_array() || values.empty()) return refuse(path, "must be a list of values");
    std::vector<std::string> texts;
    for (const auto& v : values) {
      texts.push_back(v.dump());
      spend(1 + texts.back().size());
      if (why_) return 0;
    }
    return add_literals(std::move(texts));
  }

  std::uint32_t add_literals(std::vector<std::string> texts) {
    return add({.kind = json_node::value_kind::literals, .texts = sorted_texts(std::move(texts))});
  }

  std::uint32_t typed(const std::string& type, const json& schema, const std::string& path, std::size_t depth) {
    if (type == "object") return object(schema, path, depth);
    if (type == "array") return array(schema, path, depth);
    if (type == "string") return string(schema, path);
    if (type == "number" || type == "integer") return number(type == "integer", schema, path);
    if (type == "boolean") return add_literals({"false", "true"});
    if (type == "null") return add_literals({"null"});
    return refuse(path + ".type", "'" + type.substr(0, 64) + "' is not a type of JSON Schema");
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
      if (n.members.empty()) return literals(json::array({json::object()}), path);
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

  /// names: of the members, in their order.
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

  /// By node: those whose value begins with its value, or must contain it.
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

  /// A choice begins like any of its alternatives. Choices may go in circles, so each change is told to those it
  /// concerns: at most once for each byte that values begin with.
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
    for (std::uint8_t digit = 0; n.is_bounded() && digit <= 9; ++digit) set.set('0' + digit, n.can_begin(false, digit));
    return set;
  }

  /// A container is one higher than the highest value it must have, a choice as high as its lowest alternative: known
  /// once that value's height is. Heights become known in ascending order, each once.
  void find_heights(const std::vector<std::vector<std::uint32_t>>& users) {
    std::vector<std::size_t> unknown(nodes_.size());  // values that it must have
    std::deque<std::uint32_t> known;
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
      json_node& n = nodes_[i];
      unknown[i] =
          (n.items_min > 0 ? 1 : 0) + static_cast<std::size_t>(std::count_if(n.members.begin(), n.members.end(),
                                                                             [](auto& m) { return m.required; }));
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
  std::uint64_t steps_max_;
  std::uint64_t steps_begin_;
  std::unordered_map<std::string, const json*> definitions_;  // by how $ref names them
  std::map<std::string, std::uint32_t> references_;
  std::map<std::uint32_t, std::string> paths_;  // of choices, for error messages
  std::optional<failure> why_;
};

}  // namespace

result<std::shared_ptr<const byte_automaton>> compile_schema(std::string_view schema, std::size_t steps_max) {
  if (schema.size() > schema_bytes_max) {
    return failure{errc::invalid_argument, "schema: expected at most " + std::to_string(schema_bytes_max) +
                                               " bytes, found " + std::to_string(schema.size())};
  }
  const auto root = parse_json<json>(schema, {.depth_max = json_depth_max});
  if (!root) return failure{errc::invalid_argument, "schema: " + root.error().context};
  return compiler(*root, steps_max).run();
}

}  // namespace redline::grammar
