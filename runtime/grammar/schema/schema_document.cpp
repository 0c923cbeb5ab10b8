#include "runtime/grammar/schema/schema_document.hpp"

#include <algorithm>
#include <optional>

namespace redline::grammar {
namespace {

/// An address relative to another one (RFC 3986, section 5.2, without "." and ".." segments).
std::string resolve(const std::string& base, std::string_view reference) {
  const auto scheme = reference.find(':');
  if (scheme != std::string_view::npos && reference.find_first_of("/?#") > scheme) return std::string(reference);
  const std::string without_fragment = base.substr(0, base.find('#'));
  if (reference.empty() || reference.front() == '#') return without_fragment + std::string(reference);
  const auto authority = without_fragment.find("://");
  const auto path = without_fragment.find('/', authority == std::string::npos ? 0 : authority + 3);
  if (reference.front() == '/') return without_fragment.substr(0, path) + std::string(reference);
  const auto slash = without_fragment.rfind('/');
  if (path == std::string::npos || slash < path)
    return without_fragment.find("://") == std::string::npos ? std::string(reference)
                                                             : without_fragment + "/" + std::string(reference);
  return without_fragment.substr(0, slash + 1) + std::string(reference);
}

std::string percent_decoded(std::string_view text) {
  std::string out;
  const auto digit = [](char c) { return c >= '0' && c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10; };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && std::isxdigit(static_cast<unsigned char>(text[i + 1])) != 0 &&
        std::isxdigit(static_cast<unsigned char>(text[i + 2])) != 0) {
      out += static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2]));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string_view without_empty_fragment(std::string_view address) {
  return address.ends_with('#') ? address.substr(0, address.size() - 1) : address;
}

/// The name by which dynamic references may mean this subschema.
std::optional<std::string> dynamic_anchor(const json& schema) {
  if (!schema.is_object()) return std::nullopt;
  const auto name = schema.find("$dynamicAnchor"), recursive = schema.find("$recursiveAnchor");
  if (name != schema.end() && name->is_string()) return name->get<std::string>();
  return recursive != schema.end() && *recursive == true ? std::optional<std::string>("") : std::nullopt;
}

}  // namespace

schema_document::schema_document(const json& root) : root_(root) {
  if (root.is_object() && root.contains("$schema") && root["$schema"].is_string()) {
    const auto& draft = root["$schema"].get_ref<const std::string&>();
    const auto is = [&draft](const char* number) { return draft.find(number) != std::string::npos; };
    may_be_draft_3_ = is("draft-03");
    refs_stand_alone_ = may_be_draft_3_ || is("draft-04") || is("draft-06") || is("draft-07");
  }
  visit(root, role::schema, "", nullptr, "schema");
  by_address_.try_emplace("", &root);
}

schema_document::role schema_document::role_of(const std::string& keyword, const json& value) {
  for (const char* one : {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies",
                          "allOf", "anyOf", "oneOf", "prefixItems"}) {
    if (keyword == one) return role::schemas;
  }
  for (const char* one : {"items", "not", "if", "then", "else", "contains", "additionalProperties", "propertyNames",
                          "additionalItems", "unevaluatedItems", "unevaluatedProperties"}) {
    if (keyword == one) return value.is_array() ? role::schemas : role::schema;
  }
  return role::other;
}

void schema_document::visit(const json& value, role what, const std::string& base, const json* parent,
                            std::string name) {
  std::string own = base;
  if (value.is_object() && what == role::schema && !(refs_stand_alone_ && value.contains("$ref"))) {
    for (const char* keyword : {"$id", "id"}) {
      const auto id = value.find(keyword);
      if (id == value.end() || !id->is_string()) continue;
      own = without_empty_fragment(resolve(base, id->get_ref<const std::string&>()));
      by_address_.try_emplace(own, &value);
      own = own.substr(0, own.find('#'));  // before draft 2019 an anchor was written as an address
      break;
    }
    for (const char* keyword : {"$anchor", "$dynamicAnchor"}) {
      const auto anchor = value.find(keyword);
      if (anchor != value.end() && anchor->is_string())
        by_address_.try_emplace(own + "#" + anchor->get_ref<const std::string&>(), &value);
    }
    if (const auto name = dynamic_anchor(value)) ++dynamic_anchors_[*name];
  }
  places_.insert_or_assign(&value, where{own, parent, std::move(name)});
  if (value.is_object()) {
    for (const auto& [key, member] : value.items()) {
      const role its = what == role::schemas ? role::schema : what == role::schema ? role_of(key, member) : role::other;
      if (key != "enum" && key != "const" && member.is_structured())
        visit(member, its, own, &value, "." + key.substr(0, 64));
    }
  } else if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      const role its = what == role::schemas ? role::schema : role::other;
      if (value[i].is_structured()) visit(value[i], its, own, &value, "[" + std::to_string(i) + "]");
    }
  }
}

const json* schema_document::follow(const json* from, std::string_view pointer) {
  while (!pointer.empty()) {
    if (pointer.front() != '/') return nullptr;
    pointer.remove_prefix(1);
    const auto end = std::min(pointer.find('/'), pointer.size());
    std::string name;
    for (std::size_t i = 0; i < end; ++i) {
      const bool is_escape = pointer[i] == '~' && i + 1 < end && (pointer[i + 1] == '0' || pointer[i + 1] == '1');
      name += is_escape ? (pointer[i + 1] == '0' ? '~' : '/') : pointer[i];
      i += is_escape ? 1 : 0;
    }
    pointer.remove_prefix(end);
    if (from->is_object()) {
      const auto member = from->find(name);
      if (member == from->end()) return nullptr;
      from = &*member;
    } else if (from->is_array()) {
      std::size_t index = 0;
      if (name.empty() || name.size() > 6 || !std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; }))
        return nullptr;
      for (const char c : name) index = index * 10 + static_cast<std::size_t>(c - '0');
      if (index >= from->size()) return nullptr;
      from = &(*from)[index];
    } else {
      return nullptr;
    }
  }
  return from;
}

const json* schema_document::find(const json& from, std::string_view reference) const {
  const auto place = places_.find(&from);
  const std::string address = resolve(place == places_.end() ? "" : place->second.base, reference);
  const auto hash = address.find('#');
  const std::string fragment =
      hash == std::string::npos ? "" : percent_decoded(std::string_view(address).substr(hash + 1));
  if (!fragment.empty() && fragment.front() != '/') {
    const auto known = by_address_.find(address.substr(0, hash) + "#" + fragment);
    return known == by_address_.end() ? nullptr : known->second;
  }
  const auto known = by_address_.find(address.substr(0, hash));
  if (known != by_address_.end()) return follow(known->second, fragment);
  return nullptr;
}

bool schema_document::is_static(const json& schema) const {
  const auto name = dynamic_anchor(schema);
  const auto known = name ? dynamic_anchors_.find(*name) : dynamic_anchors_.end();
  return known == dynamic_anchors_.end() || known->second == 1;
}

std::string schema_document::path_of(const json& schema) const {
  std::string path;
  const json* at = &schema;
  for (auto known = places_.find(at); at != nullptr && known != places_.end() && path.size() < 512;
       known = places_.find(at)) {
    path = known->second.name + path;
    at = known->second.parent;
  }
  return path.empty() ? "schema" : path;
}

}  // namespace redline::grammar
