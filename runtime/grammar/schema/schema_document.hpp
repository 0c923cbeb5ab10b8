#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <unordered_map>

#include "runtime/base/result.hpp"

namespace redline::grammar {

using json = nlohmann::ordered_json;

/// A JSON Schema with its subschemas by address.
class schema_document {
 public:
  /// `root` must outlive this.
  explicit schema_document(const json& root);

  /// What a `$ref` in a subschema means: a JSON pointer, an anchor, or the address of a subschema (`$id`), relative to
  /// the address of the subschema it is in. Null if it is not in this document.
  [[nodiscard]] const json* find(const json& from, std::string_view reference) const;
  /// Whether a `$dynamicRef` or `$recursiveRef` that leads to this subschema means no other, from wherever it is
  /// reached.
  [[nodiscard]] bool is_static(const json& schema) const;
  /// Whether `$ref` is all that counts in its subschema, as before the draft of 2019.
  [[nodiscard]] bool refs_stand_alone() const { return refs_stand_alone_; }
  /// Whether the document says that it follows draft 3, or does not say what it follows.
  [[nodiscard]] bool may_be_draft_3() const { return may_be_draft_3_; }
  [[nodiscard]] bool is_root(const json& schema) const { return &schema == &root_; }
  /// Where a subschema is, for error messages: "schema.properties.name".
  [[nodiscard]] std::string path_of(const json& schema) const;

 private:
  struct where {
    std::string base;  // the address that references are relative to
    const json* parent = nullptr;
    std::string name;
  };
  /// Where a value stands among schemas. Values of other kinds may be referred to, but have no address of their own.
  enum class role : std::uint8_t { schema, schemas, other };
  void visit(const json& value, role what, const std::string& base, const json* parent, std::string name);
  [[nodiscard]] static role role_of(const std::string& keyword, const json& value);
  [[nodiscard]] static const json* follow(const json* from, std::string_view pointer);

  const json& root_;
  std::unordered_map<const json*, where> places_;
  std::unordered_map<std::string, const json*> by_address_;
  std::map<std::string, std::size_t> dynamic_anchors_;  // how many subschemas have each; "" is `$recursiveAnchor`
  bool refs_stand_alone_ = false;
  bool may_be_draft_3_ = true;
};

}  // namespace redline::grammar
