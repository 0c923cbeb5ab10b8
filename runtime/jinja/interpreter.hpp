#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/jinja/ast.hpp"
#include "runtime/jinja/builtins.hpp"
#include "runtime/jinja/object.hpp"

namespace redline::jinja {

class namespace_object;

/// The variables of one block. A lookup goes outward through the parents; an assignment stays here.
struct variable_scope {
  explicit variable_scope(std::shared_ptr<variable_scope> around) : parent(std::move(around)) {}
  std::shared_ptr<variable_scope> parent;
  std::vector<std::pair<std::uint32_t, value>> variables;
};

/// One rendering of one program. Failures are thrown as error.
class interpreter {
 public:
  /// now: seconds since 1970, for strftime_now. Program and budget must outlive the interpreter.
  interpreter(const template_program& program, render_budget& budget, std::int64_t now);
  ~interpreter();
  interpreter(const interpreter&) = delete;
  interpreter& operator=(const interpreter&) = delete;

  /// Defines a variable of the outermost scope; ignored if the template never names it.
  void define(const std::string& name, value v);
  std::string render();

  /// The line of the statement or call being executed.
  [[nodiscard]] std::uint32_t line() const { return line_; }
  [[nodiscard]] std::int64_t now() const { return now_; }
  render_budget& budget() { return budget_; }

  // -- for built-ins and objects

  /// Evaluates object.name: a method or attribute, else an item.
  value attribute(const value& object, std::string_view name);
  /// Evaluates object[key]: an item, else a method or attribute.
  value item(const value& object, const value& key);
  value call(const value& callee, call_arguments arguments);
  value apply_native(native_function native, std::string_view name, const value& self, call_arguments& arguments);
  value apply_method(native_function native, std::string_view name, const value& self, call_arguments& arguments);
  /// Applies a filter or test by its name at run time; throws if it is unknown.
  value apply_filter(std::string_view name, const value& self, call_arguments& arguments);
  bool apply_test(std::string_view name, const value& self, call_arguments& arguments);
  /// Keeps an object that may become part of a cycle, and empties it at the end.
  void keep(std::shared_ptr<namespace_object> object);

  /// Runs a macro's body in a new scope inside `around`.
  value run_macro(const statement& macro, const std::shared_ptr<variable_scope>& around, call_arguments arguments);
  /// Whether `item`, assigned to the loop's targets in a new scope, passes the loop's filter.
  bool passes(const statement& loop, const std::shared_ptr<variable_scope>& around, const value& item);

 private:
  enum class flow { normal, leave_loop, next_round };

  flow execute(const statement_list& block);
  flow execute(const statement& statement);
  flow execute_choice(const statement& statement);
  flow execute_loop(const statement& statement, const value& items);
  void execute_assignment(const statement& statement);
  void execute_call_block(const statement& statement);
  flow execute_scoped(const statement_list& block);
  /// The output of a block, executed in its own scope.
  std::string capture(const statement_list& block);
  void assign(const assignment_target& target, const value& v);
  void set(std::uint32_t variable, value v);
  /// Notes that a macro now refers to the current scope.
  void keep_scope();

  value evaluate(const expression& e);
  value evaluate_list(const expression& e);
  value evaluate_dict(const expression& e);
  value evaluate_arithmetic(const expression& e);
  value evaluate_concatenation(const expression& e);
  value evaluate_comparison(const expression& e);
  value evaluate_slice(const expression& e);
  value evaluate_call(const expression& e);
  value evaluate_conditional(const expression& e);
  bool compare(expression::comparison comparison, const value& a, const value& b);
  call_arguments evaluate_arguments(const std::vector<argument_expression>& arguments);
  value apply_filters(const expression& e, const value* head);
  value look_up(std::uint32_t variable);
  /// Passes `caller`, `varargs` and `kwargs` to a macro that mentions them, and throws for other surplus arguments.
  void bind_surplus(const statement& macro, call_arguments& arguments);

  const template_program& program_;
  render_budget& budget_;
  std::int64_t now_;
  std::uint32_t line_ = 0;
  std::shared_ptr<variable_scope> scope_;
  text_builder* out_ = nullptr;
  // Macros refer to scopes, and namespaces to anything, so cycles are possible; these are emptied at the end.
  std::vector<std::shared_ptr<variable_scope>> kept_scopes_;
  std::vector<std::shared_ptr<namespace_object>> kept_namespaces_;
};

/// namespace(): the only value whose attributes templates may set.
class namespace_object final : public object_base {
 public:
  [[nodiscard]] std::string_view type_name() const override { return "Namespace"; }
  value attribute(interpreter& engine, std::string_view name) override;
  void set(render_budget& budget, std::string_view name, value v);
  void clear() { attributes_.clear(); }

 private:
  std::vector<std::pair<std::string, value>> attributes_;
};

/// A built-in function, or a method with its object.
class bound_function final : public object_base {
 public:
  bound_function(native_function native, std::string name, value self = {})
      : native_(native), name_(std::move(name)), self_(std::move(self)) {}
  [[nodiscard]] std::string_view type_name() const override { return "builtin_function_or_method"; }
  [[nodiscard]] std::uint32_t nesting() const override { return self_.nesting(); }
  [[nodiscard]] bool is_callable() const override { return true; }
  value call(interpreter& engine, call_arguments arguments) override;

 private:
  native_function native_;
  std::string name_;
  value self_;
};

}  // namespace redline::jinja
