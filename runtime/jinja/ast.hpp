#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/jinja/value.hpp"

namespace redline::jinja {

struct native_call;
/// A filter, a method or a built-in function; see builtins.hpp.
using native_function = value (*)(native_call& call);

struct expression;
using expression_ref = const expression*;  // owned by the program, never null inside a list

/// One argument of a call, a filter or a test.
struct argument_expression {
  enum class kind { positional, keyword, spread_list, spread_dict };
  kind type = kind::positional;
  std::string name;  // name of a keyword argument
  expression_ref value = nullptr;
};

struct expression {
  enum class kind {
    constant,  // literal
    name,      // variable
    list,      // operands
    tuple,     // operands
    dict,      // operands: key, value, key, value ...
    negate,    // operands[0]; likewise plus, logical_not
    plus,
    logical_not,
    logical_and,  // operands[0], operands[1]; likewise the ones below
    logical_or,
    add,
    subtract,
    multiply,
    divide,
    floor_divide,
    modulo,
    power,
    concatenate,  // all operands
    compare,      // operands[0] comparisons[0] operands[1] comparisons[1] ...
    conditional,  // operands: condition, value, alternative or null
    attribute,    // operands[0] . text
    item,         // operands[0] [ operands[1] ]
    slice,        // operands[0] [ operands[1] : operands[2] : operands[3] ], null where left out
    call,         // operands[0] ( arguments )
    filter,       // operands[0] | text ( arguments ); operands[0] null for the head of a filter block
    test,         // operands[0] is text ( arguments )
  };
  enum class comparison { equal, unequal, less, less_equal, greater, greater_equal, in, not_in };

  kind type = kind::constant;
  std::uint32_t line = 0;
  std::uint32_t variable = 0;  // index into the program's names
  value literal;
  std::string text;
  std::vector<expression_ref> operands;
  std::vector<comparison> comparisons;
  std::vector<argument_expression> arguments;
  native_function native = nullptr;  // the function of a filter or test; null if the name is unknown
};

/// What can stand left of `=` or between `for` and `in`.
struct assignment_target {
  enum class kind { name, attribute, tuple };
  kind type = kind::name;
  std::uint32_t variable = 0;
  std::string attribute;                 // name in the namespace `variable`
  std::vector<assignment_target> parts;  // for a tuple
};

struct statement;
using statement_list = std::vector<const statement*>;

struct macro_parameter {
  std::uint32_t variable = 0;
  expression_ref fallback = nullptr;  // null if the argument must be passed (else undefined)
};

/// A macro, or the body that a call block passes as `caller`.
struct macro_signature {
  std::string name;
  std::vector<macro_parameter> parameters;
  // Whether the body mentions these names, so that surplus arguments are accepted.
  bool uses_varargs = false;
  bool uses_kwargs = false;
  bool uses_caller = false;
};

struct statement {
  enum class kind {
    data,          // text
    print,         // value
    choose,        // if: values[i] guards bodies[i]; one more body is `else`
    loop,          // for targets[0] in values[0] if values[1] (or null): bodies[0], else bodies[1]
    assign,        // targets[0] = values[0]
    assign_block,  // targets[0] = bodies[0], through the filter in values[0] if not null
    macro,         // signature, bodies[0]; targets[0] names it
    call_block,    // values[0] is the call; signature and bodies[0] are its caller
    filter_block,  // values[0] is a filter without head, over bodies[0]
    with_block,    // targets[i] = values[i], then bodies[0]
    scope,         // bodies[0] in a scope of its own (generation)
    leave_loop,    // break
    next_round,    // continue
  };
  kind type = kind::data;
  std::uint32_t line = 0;
  std::string text;
  std::vector<expression_ref> values;
  std::vector<assignment_target> targets;
  std::vector<statement_list> bodies;
  macro_signature signature;
};

/// A parsed template. Immutable, so that many renderings may share it.
struct template_program {
  template_program() : constants(std::make_unique<render_budget>(template_limits{})) {}

  /// The index of a name that the template uses, or nothing.
  [[nodiscard]] std::optional<std::uint32_t> find_name(const std::string& name) const {
    const auto found = name_index.find(name);
    if (found == name_index.end()) return std::nullopt;
    return found->second;
  }

  std::unique_ptr<render_budget>
      constants;  // accounts for the literals; declared before the members that it must outlive
  std::vector<std::string> names;
  std::unordered_map<std::string, std::uint32_t> name_index;
  // Nodes are stored here rather than in each other, so that deep trees are destroyed without recursion.
  std::vector<std::unique_ptr<expression>> expressions;
  std::vector<std::unique_ptr<statement>> statements;
  statement_list body;
};

}  // namespace redline::jinja
