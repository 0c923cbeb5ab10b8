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

namespace redline::text {

class jinja_namespace;

/// The variables of one block. A lookup goes outwards through the parents; an assignment stays here.
struct jinja_scope {
  explicit jinja_scope(std::shared_ptr<jinja_scope> around) : parent(std::move(around)) {}
  std::shared_ptr<jinja_scope> parent;
  std::vector<std::pair<std::uint32_t, jinja_value>> variables;
};

/// One rendering of one program. Failures are thrown as jinja_error.
class jinja_interpreter {
 public:
  /// now: seconds since 1970, for strftime_now. Program and budget must outlive the interpreter.
  jinja_interpreter(const jinja_program& program, jinja_budget& budget, std::int64_t now);
  ~jinja_interpreter();
  jinja_interpreter(const jinja_interpreter&) = delete;
  jinja_interpreter& operator=(const jinja_interpreter&) = delete;

  /// A variable of the outermost scope; ignored when the template never names it.
  void define(const std::string& name, jinja_value value);
  std::string render();

  /// The line of the statement or call being executed.
  [[nodiscard]] std::uint32_t line() const { return line_; }
  [[nodiscard]] std::int64_t now() const { return now_; }
  jinja_budget& budget() { return budget_; }

  // -- for built-ins and objects

  /// object.name: a method or attribute, else an item.
  jinja_value attribute(const jinja_value& object, std::string_view name);
  /// object[key]: an item, else a method or attribute.
  jinja_value item(const jinja_value& object, const jinja_value& key);
  jinja_value call(const jinja_value& callee, jinja_arguments arguments);
  jinja_value apply_native(jinja_native native, std::string_view name, const jinja_value& self,
                           jinja_arguments& arguments);
  /// A filter or test by name at run time; throws when there is none.
  jinja_value apply_filter(std::string_view name, const jinja_value& self, jinja_arguments& arguments);
  bool apply_test(std::string_view name, const jinja_value& self, jinja_arguments& arguments);
  /// Keeps an object that others may come to point at in a circle, and empties it at the end.
  void keep(std::shared_ptr<jinja_namespace> object);

  /// Runs a macro's body in a new scope inside `around`.
  jinja_value run_macro(const jinja_statement& macro, const std::shared_ptr<jinja_scope>& around,
                        jinja_arguments arguments);
  /// Runs a loop over items; what the body prints is returned.
  std::string run_loop(const jinja_statement& loop, const std::shared_ptr<jinja_scope>& around,
                       const jinja_value& items, std::uint32_t depth);
  /// The value of an expression in a scope with the loop's targets set to `item`.
  bool passes(const jinja_statement& loop, const std::shared_ptr<jinja_scope>& around, const jinja_value& item);

 private:
  enum class flow { normal, leave_loop, next_round };

  flow execute(const jinja_block& block);
  flow execute(const jinja_statement& statement);
  flow execute_choice(const jinja_statement& statement);
  flow execute_loop(const jinja_statement& statement, const jinja_value& items, std::uint32_t depth);
  void execute_assignment(const jinja_statement& statement);
  void execute_call_block(const jinja_statement& statement);
  flow execute_scoped(const jinja_block& block);
  /// What a block prints, in a scope of its own.
  std::string capture(const jinja_block& block);
  void assign(const jinja_target& target, const jinja_value& value);
  void set(std::uint32_t variable, jinja_value value);
  /// A macro now points at the current scope.
  void keep_scope();

  jinja_value evaluate(const jinja_expression& e);
  jinja_value evaluate_list(const jinja_expression& e);
  jinja_value evaluate_dict(const jinja_expression& e);
  jinja_value evaluate_arithmetic(const jinja_expression& e);
  jinja_value evaluate_concatenation(const jinja_expression& e);
  jinja_value evaluate_comparison(const jinja_expression& e);
  jinja_value evaluate_slice(const jinja_expression& e);
  jinja_value evaluate_call(const jinja_expression& e);
  jinja_value evaluate_conditional(const jinja_expression& e);
  bool compare(jinja_expression::comparison comparison, const jinja_value& a, const jinja_value& b);
  jinja_arguments evaluate_arguments(const std::vector<jinja_argument>& arguments);
  jinja_value apply_filters(const jinja_expression& e, const jinja_value* head);
  jinja_value look_up(std::uint32_t variable);
  /// Gives `caller`, `varargs` and `kwargs` to a macro that mentions them, and throws for what has no place.
  void bind_surplus(const jinja_statement& macro, jinja_arguments& arguments);

  const jinja_program& program_;
  jinja_budget& budget_;
  std::int64_t now_;
  std::uint32_t line_ = 0;
  std::shared_ptr<jinja_scope> scope_;
  jinja_text_builder* out_ = nullptr;
  // Macros point at scopes and namespaces at anything, so circles are possible; these are emptied at the end.
  std::vector<std::shared_ptr<jinja_scope>> kept_scopes_;
  std::vector<std::shared_ptr<jinja_namespace>> kept_namespaces_;
};

/// namespace(): the one value whose attributes templates may set.
class jinja_namespace final : public jinja_object {
 public:
  [[nodiscard]] std::string_view type_name() const override { return "Namespace"; }
  jinja_value attribute(jinja_interpreter& interpreter, std::string_view name) override;
  void set(jinja_budget& budget, std::string_view name, jinja_value value);
  void clear() { attributes_.clear(); }

 private:
  std::vector<std::pair<std::string, jinja_value>> attributes_;
};

/// A built-in function, or a method with its object.
class jinja_function final : public jinja_object {
 public:
  jinja_function(jinja_native native, std::string name, jinja_value self = {})
      : native_(native), name_(std::move(name)), self_(std::move(self)) {}
  [[nodiscard]] std::string_view type_name() const override { return "builtin_function_or_method"; }
  [[nodiscard]] std::uint32_t nesting() const override { return self_.nesting(); }
  [[nodiscard]] bool is_callable() const override { return true; }
  jinja_value call(jinja_interpreter& interpreter, jinja_arguments arguments) override;

 private:
  jinja_native native_;
  std::string name_;
  jinja_value self_;
};

}  // namespace redline::text
