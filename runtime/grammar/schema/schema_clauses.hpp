#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runtime/grammar/schema/schema_document.hpp"
#include "runtime/grammar/schema/schema_numbers.hpp"
#include "runtime/grammar/syntax/regex_dfa.hpp"
#include "runtime/grammar/syntax/steps.hpp"

namespace redline::grammar {

/// A schema that a value must match, or must not.
struct schema_term {
  const json* schema = nullptr;
  bool is_negated = false;
  auto operator<=>(const schema_term&) const = default;
};
/// All of them hold. Each once, in the order in which they were found: sessions and targets compile the same text to
/// the same tables, so nothing may depend on addresses.
using schema_terms = std::vector<schema_term>;
void add_term(schema_terms& to, schema_term one);

/// Types of values, as bits of a set. A whole number is one without a fraction.
enum value_type : std::uint32_t {
  null_values = 1,
  boolean_values = 2,
  object_values = 4,
  array_values = 8,
  string_values = 16,
  whole_values = 32,
  fraction_values = 64,
  number_values = whole_values | fraction_values,
  all_values = 127,
};
[[nodiscard]] std::uint32_t type_of_value(const json& value);
/// Whether a keyword says in some draft which values match.
[[nodiscard]] bool asserts(std::string_view keyword);

/// Assertions that hold together, without alternatives: each about the values of one type.
struct schema_clause {
  std::uint32_t types = all_values;
  std::optional<std::vector<const json*>> values;  // the value is one of these
  std::vector<const json*> excluded;               // and none of these

  number_bounds numbers;

  std::uint32_t length_min = 0, length_max = UINT32_MAX;  // of strings, in characters
  struct text_rule {
    std::shared_ptr<const regex_dfa> texts;
    bool is_negated = false;
  };
  std::vector<text_rule> texts;

  std::vector<const json*> arrays;  // schemas whose keywords for items hold
  std::uint32_t items_min = 0, items_max = UINT32_MAX;
  bool is_unique = false;
  struct containing {
    schema_term what;
    std::uint32_t least = 1, most = UINT32_MAX;
  };
  std::vector<containing> contains;
  schema_terms every_item;

  std::vector<const json*> objects;             // schemas whose keywords for members hold
  std::map<std::string, schema_terms> members;  // what holds for single members besides, if they are there
  std::vector<std::string> required;            // each once, in the order of their first mention
  std::set<std::string> forbidden;
  std::uint32_t members_min = 0, members_max = UINT32_MAX;

  /// What a keyword has looked at, which `unevaluatedProperties` and `unevaluatedItems` leave alone.
  struct evaluation {
    enum class kind : std::uint8_t { named, by_pattern, every_member, prefix, every_item };
    kind what;
    const json* value;  // of the keyword
  };
  /// What holds for the members or items at which none of `evaluated` from `first` to before `last` has looked.
  struct rest_rule {
    schema_term what;
    bool is_of_items = false;
    std::size_t first = 0, last = 0;
  };
  std::vector<evaluation> evaluated;  // only within schemas with one of those keywords
  std::vector<rest_rule> rests;
  std::vector<std::size_t> open_rests;  // where they begin in `evaluated`, while such schemas are read

  [[nodiscard]] bool requires_member(const std::string& name) const;
  /// Whether item `i` is left to a rule of items.
  [[nodiscard]] bool leaves_item(const rest_rule& rest, std::size_t i) const;
  /// Whether a member is left to a rule of members. is_named: tells whether it is one of an object's; matches: whether
  /// its name matches a pattern.
  template<class Named, class Matches>
  [[nodiscard]] bool leaves_member(const rest_rule& rest, Named is_named, Matches matches) const {
    using enum evaluation::kind;
    return std::none_of(evaluated.begin() + static_cast<std::ptrdiff_t>(rest.first),
                        evaluated.begin() + static_cast<std::ptrdiff_t>(rest.last), [&](const evaluation& e) {
                          if (e.what == named) return is_named(*e.value);
                          if (e.what != by_pattern) return e.what == every_member;
                          const auto patterns = e.value->items();
                          return std::any_of(patterns.begin(), patterns.end(),
                                             [&](const auto& one) { return matches(one.key()); });
                        });
  }
};

/// Reads the assertions of a document's schemas. Stops at the first error.
class schema_reader {
 public:
  schema_reader(const schema_document& document, step_count& steps) : document_(document), steps_(steps) {}

  /// The alternatives of the terms, in disjunctive normal form. None if no value matches.
  std::vector<schema_clause> expand(const schema_terms& all);
  /// Whether a value matches all the terms.
  bool hold(const schema_terms& all, const json& value);
  /// The texts that a pattern of the schema's keyword matches; null after an error.
  std::shared_ptr<const regex_dfa> find_texts(const std::string& pattern, const json& schema,
                                              const std::string& keyword);

  [[nodiscard]] const std::optional<failure>& why() const { return why_; }
  /// keyword: that of the schema which is wrong; empty if it is the schema.
  void refuse(const json& schema, const std::string& keyword, const std::string& problem);
  /// The limit of steps for all expressions together, those of patterns and those made from them.
  step_count& pattern_steps() { return pattern_steps_; }
  /// Counts work. Returns false after an error.
  bool spend(std::size_t steps);
  [[nodiscard]] const schema_document& document() const { return document_; }

 private:
  using clauses = std::vector<schema_clause>;
  clauses apply(clauses all, const schema_term& one, std::uint32_t depth);
  clauses apply_all(clauses all, const json& schema, bool is_only_ref, std::uint32_t depth);
  clauses deny_any(clauses all, const json& schema, bool is_only_ref, std::uint32_t depth);
  clauses apply_keyword(clauses all, const json& schema, const std::string& keyword, const json& value,
                        std::uint32_t depth);
  clauses deny_keyword(clauses all, const json& schema, const std::string& keyword, const json& value,
                       std::uint32_t depth);
  clauses one_of(clauses all, const json& ways, std::uint32_t depth);
  clauses any_of(clauses all, const std::vector<schema_term>& ways, std::uint32_t depth);
  clauses without_size(clauses all, const json& value);
  clauses prune(clauses all);
  [[nodiscard]] bool is_possible(schema_clause& c);
  [[nodiscard]] bool has_common_value(const schema_clause& c, const std::string& member);
  bool holds(const json& schema, const json& value, std::uint32_t depth);
  bool keyword_holds(const json& schema, const std::string& keyword, const json& value, const json& instance,
                     std::uint32_t depth);
  const json* target(const json& schema, const std::string& keyword, const json& reference);
  std::uint32_t types_named(const json& schema, const json& type);
  std::uint32_t count_of(const json& schema, const std::string& keyword, const json& count);
  bool is_list(const json& schema, const std::string& keyword, const json& list);
  bool is_object(const json& schema, const std::string& keyword, const json& value);
  /// Whether what keywords look at counts: nothing does within a negation.
  [[nodiscard]] bool is_evaluating() const { return is_in_rest_ && negations_ == 0; }

  const schema_document& document_;
  step_count& steps_;
  std::map<std::string, std::shared_ptr<const regex_dfa>> texts_;  // by pattern
  std::uint32_t states_count_ = 0;
  step_count pattern_steps_{4'000'000};  // about 40 ms
  bool is_narrowed_ = false;             // some values that match were left out since this was reset
  bool is_in_rest_ = false;              // a schema around has `unevaluatedProperties` or `unevaluatedItems`
  std::uint32_t negations_ = 0;          // around what is read
  std::optional<failure> why_;
};

}  // namespace redline::grammar
