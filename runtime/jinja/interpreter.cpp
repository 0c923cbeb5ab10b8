#include "runtime/jinja/interpreter.hpp"

#include <algorithm>
#include <utility>

#include "runtime/jinja/arithmetic.hpp"
#include "runtime/jinja/text.hpp"

namespace redline::jinja {
namespace {

constexpr std::size_t kept_bytes = 256;  // approximate size of a scope or namespace that is kept to the end

/// The `loop` of a for block. Items under an `if` are tested as late as Python's generator would test them, because the
/// body may change what the filter depends on.
class loop_object final : public object_base {
 public:
  loop_object(render_budget& budget, const statement& of, const std::shared_ptr<variable_scope>& around,
              std::uint32_t nesting, std::vector<value> source)
      : of_(of),
        around_(around),
        nesting_(nesting + 1),
        source_(std::move(source)),
        charge_(budget, source_.size() * 2 * sizeof(value)) {
    if (of_.values[1] == nullptr) items_ = std::exchange(source_, {});
  }

  [[nodiscard]] std::string_view type_name() const override { return "LoopContext"; }
  [[nodiscard]] std::uint32_t nesting() const override { return nesting_; }

  bool advance(interpreter& engine) {
    if (!has(engine, static_cast<std::size_t>(index_ + 1))) return false;
    ++index_;
    return true;
  }
  [[nodiscard]] const value& current() const { return items_[static_cast<std::size_t>(index_)]; }

  value attribute(interpreter& engine, std::string_view name) override;
  [[nodiscard]] std::size_t rounds() const { return static_cast<std::size_t>(index_); }

 private:
  /// Whether the loop has an item at `index`; tests as many more source items as that requires.
  bool has(interpreter& engine, std::size_t index) {
    while (items_.size() <= index && next_source_ < source_.size()) {
      const value& candidate = source_[next_source_++];
      if (engine.passes(of_, scope_around(), candidate)) items_.push_back(candidate);
    }
    return index < items_.size();
  }
  std::int64_t count(interpreter& engine) {
    has(engine, SIZE_MAX);
    return static_cast<std::int64_t>(items_.size());
  }

  [[nodiscard]] std::shared_ptr<variable_scope> scope_around() const {
    std::shared_ptr<variable_scope> around = around_.lock();
    if (around == nullptr) throw error{"expected a loop that is still running"};
    return around;
  }

  const statement& of_;
  // A weak pointer, so that loops and the scopes that keep them never form a chain.
  std::weak_ptr<variable_scope> around_;
  std::uint32_t nesting_;
  std::int64_t index_ = -1;
  std::vector<value> items_;   // the items known to pass the filter
  std::vector<value> source_;  // empty if there is no filter
  std::size_t next_source_ = 0;
  memory_charge charge_;
};

/// loop.cycle(a, b, ...): selects an argument by the round.
class loop_cycle final : public object_base {
 public:
  explicit loop_cycle(std::size_t round) : round_(round) {}
  [[nodiscard]] std::string_view type_name() const override { return "method"; }
  [[nodiscard]] bool is_callable() const override { return true; }
  value call(interpreter&, call_arguments arguments) override {
    if (arguments.positional.empty() || !arguments.keyword.empty()) throw error{"expected values for `loop.cycle`"};
    return arguments.positional[round_ % arguments.positional.size()];
  }

 private:
  std::size_t round_;
};

value loop_object::attribute(interpreter& engine, std::string_view name) {
  const auto at = static_cast<std::size_t>(index_);
  if (name == "index") return value::integer(index_ + 1);
  if (name == "index0") return value::integer(index_);
  if (name == "first") return value::boolean(index_ == 0);
  if (name == "last") return value::boolean(!has(engine, at + 1));
  if (name == "length") return value::integer(count(engine));
  if (name == "revindex") return value::integer(count(engine) - index_);
  if (name == "revindex0") return value::integer(count(engine) - index_ - 1);
  if (name == "cycle") return value::object(std::make_shared<loop_cycle>(rounds()));
  if (name == "previtem") return index_ > 0 ? items_[at - 1] : value::undefined("there is no previous item");
  if (name == "nextitem") return has(engine, at + 1) ? items_[at + 1] : value::undefined("there is no next item");
  return object_base::attribute(engine, name);
}

class macro_object final : public object_base {
 public:
  macro_object(const statement& of, std::shared_ptr<variable_scope> around) : of_(of), around_(std::move(around)) {}
  [[nodiscard]] std::string_view type_name() const override { return "Macro"; }
  [[nodiscard]] bool is_callable() const override { return true; }
  value attribute(interpreter& engine, std::string_view name) override {
    if (name == "name") return value::string(engine.budget(), of_.signature.name);
    return object_base::attribute(engine, name);
  }
  value call(interpreter& engine, call_arguments arguments) override {
    return engine.run_macro(of_, around_, std::move(arguments));
  }

 private:
  const statement& of_;
  std::shared_ptr<variable_scope> around_;
};

std::string attribute_missing(const value& object, std::string_view name) {
  return "'" + std::string(object.type_name()) + " object' has no attribute '" + std::string(name.substr(0, 80)) + "'";
}

/// Fails only when executed: templates name other programs' filters in conditional branches. line: 0 if unknown.
[[noreturn]] void fail_unknown(std::string_view kind, std::string_view name, std::uint32_t line = 0) {
  throw error{std::string(kind) + " `" + std::string(name.substr(0, 40)) + "` is not supported", errc::invalid_template,
              line};
}

bool is_hashable(const value& key) { return !key.is_dict() && !(key.is_list() && !key.as_list().is_tuple); }

}  // namespace

value object_base::attribute(interpreter&, std::string_view name) {
  return value::undefined("'" + std::string(type_name()) + " object' has no attribute '" +
                          std::string(name.substr(0, 80)) + "'");
}

value object_base::call(interpreter&, call_arguments) {
  throw error{"expected something to call, found " + std::string(type_name())};
}

value namespace_object::attribute(interpreter& engine, std::string_view name) {
  for (const auto& [key, v] : attributes_) {
    if (key == name) return v;
  }
  return object_base::attribute(engine, name);
}

void namespace_object::set(render_budget& budget, std::string_view name, value v) {
  budget.step(1 + attributes_.size() / 8);
  for (auto& [key, old] : attributes_) {
    if (key == name) {
      old = std::move(v);
      return;
    }
  }
  budget.acquire(kept_bytes);
  attributes_.emplace_back(name, std::move(v));
}

value bound_function::call(interpreter& engine, call_arguments arguments) {
  return engine.apply_method(native_, name_, self_, arguments);
}

interpreter::interpreter(const template_program& program, render_budget& budget, std::int64_t now)
    : program_(program), budget_(budget), now_(now), scope_(std::make_shared<variable_scope>(nullptr)) {
  kept_scopes_.push_back(scope_);
}

interpreter::~interpreter() {
  // The scopes around the kept ones are cleared, too: a chain of scopes and macros would be destroyed recursively.
  for (const auto& kept : kept_scopes_) {
    for (variable_scope* scope = kept.get(); scope != nullptr; scope = scope->parent.get()) scope->variables.clear();
  }
  for (const auto& object : kept_namespaces_) object->clear();
}

void interpreter::keep(std::shared_ptr<namespace_object> object) {
  budget_.acquire(kept_bytes);
  kept_namespaces_.push_back(std::move(object));
}

void interpreter::keep_scope() {
  budget_.acquire(kept_bytes);
  kept_scopes_.push_back(scope_);
}

void interpreter::define(const std::string& name, value v) {
  if (const auto variable = program_.find_name(name)) set(*variable, std::move(v));
}

std::string interpreter::render() {
  text_builder out(budget_, budget_.limits().output_bytes_max);
  out_ = &out;
  execute(program_.body);
  out_ = nullptr;
  return out.take();
}

// -- statements

interpreter::flow interpreter::execute(const statement_list& block) {
  for (const statement* s : block) {
    if (const flow f = execute(*s); f != flow::normal) return f;
  }
  return flow::normal;
}

interpreter::flow interpreter::execute(const statement& s) {
  const depth_guard depth(budget_);
  budget_.step();
  line_ = s.line;
  switch (s.type) {
    case statement::kind::data:
      out_->append(s.text);
      break;
    case statement::kind::print:
      out_->append_value(evaluate(*s.values[0]));
      break;
    case statement::kind::choose:
      return execute_choice(s);
    case statement::kind::loop:
      return execute_loop(s, evaluate(*s.values[0]));
    case statement::kind::assign:
      execute_assignment(s);
      break;
    case statement::kind::assign_block: {
      value v = value::string(budget_, capture(s.bodies[0]));
      if (s.values[0] != nullptr) v = apply_filters(*s.values[0], &v);
      assign(s.targets[0], v);
      break;
    }
    case statement::kind::macro:
      keep_scope();
      assign(s.targets[0], value::object(std::make_shared<macro_object>(s, scope_)));
      break;
    case statement::kind::call_block:
      execute_call_block(s);
      break;
    case statement::kind::filter_block: {
      const value v = value::string(budget_, capture(s.bodies[0]));
      out_->append_value(apply_filters(*s.values[0], &v));
      break;
    }
    case statement::kind::with_block: {
      std::vector<value> values;
      for (const expression* v : s.values) values.push_back(evaluate(*v));
      const std::shared_ptr<variable_scope> around = scope_;
      scope_ = std::make_shared<variable_scope>(around);
      for (std::size_t i = 0; i < values.size(); ++i) assign(s.targets[i], values[i]);
      const flow f = execute(s.bodies[0]);
      scope_ = around;
      return f;
    }
    case statement::kind::scope:
      return execute_scoped(s.bodies[0]);
    case statement::kind::leave_loop:
      return flow::leave_loop;
    case statement::kind::next_round:
      return flow::next_round;
  }
  return flow::normal;
}

interpreter::flow interpreter::execute_choice(const statement& s) {
  for (std::size_t i = 0; i < s.values.size(); ++i) {
    if (evaluate(*s.values[i]).truth()) return execute(s.bodies[i]);
  }
  return s.bodies.size() > s.values.size() ? execute(s.bodies.back()) : flow::normal;
}

interpreter::flow interpreter::execute_loop(const statement& s, const value& items) {
  const std::shared_ptr<variable_scope> around = scope_;
  const auto loop = std::make_shared<loop_object>(budget_, s, around, items.nesting(), iterate(budget_, items));
  const auto variable = program_.find_name("loop");
  bool any = false;  // as in Jinja, a round that break or continue ends does not prevent `else`
  while (loop->advance(*this)) {
    budget_.step();
    scope_ = std::make_shared<variable_scope>(around);
    if (variable) set(*variable, value::object(loop));
    assign(s.targets[0], loop->current());
    const flow f = execute(s.bodies[0]);
    scope_ = around;
    any |= f == flow::normal;
    if (f == flow::leave_loop) break;
  }
  return any ? flow::normal : execute_scoped(s.bodies[1]);
}

bool interpreter::passes(const statement& loop, const std::shared_ptr<variable_scope>& around, const value& item) {
  const std::shared_ptr<variable_scope> inner = std::exchange(scope_, std::make_shared<variable_scope>(around));
  assign(loop.targets[0], item);
  const bool passed = evaluate(*loop.values[1]).truth();
  scope_ = inner;
  return passed;
}

void interpreter::execute_assignment(const statement& s) { assign(s.targets[0], evaluate(*s.values[0])); }

void interpreter::execute_call_block(const statement& s) {
  const expression& call_expression = *s.values[0];
  const value callee = evaluate(*call_expression.operands[0]);
  call_arguments arguments = evaluate_arguments(call_expression.arguments);
  keep_scope();
  arguments.keyword.emplace_back("caller", value::object(std::make_shared<macro_object>(s, scope_)));
  out_->append_value(call(callee, std::move(arguments)));
}

interpreter::flow interpreter::execute_scoped(const statement_list& block) {
  if (block.empty()) return flow::normal;
  const std::shared_ptr<variable_scope> around = scope_;
  scope_ = std::make_shared<variable_scope>(around);
  const flow f = execute(block);
  scope_ = around;
  return f;
}

std::string interpreter::capture(const statement_list& block) {
  text_builder out(budget_);
  text_builder* const outer = std::exchange(out_, &out);
  execute_scoped(block);
  out_ = outer;
  return out.take();
}

void interpreter::set(std::uint32_t variable, value v) {
  budget_.step(scope_->variables.size() / 16);
  for (auto& [known, old] : scope_->variables) {
    if (known == variable) {
      old = std::move(v);
      return;
    }
  }
  scope_->variables.emplace_back(variable, std::move(v));
}

void interpreter::assign(const assignment_target& target, const value& v) {
  switch (target.type) {
    case assignment_target::kind::name:
      set(target.variable, v);
      break;
    case assignment_target::kind::attribute: {
      const value object = look_up(target.variable);
      auto* const space =
          object.type() == value::kind::object ? dynamic_cast<namespace_object*>(object.as_object().get()) : nullptr;
      if (space == nullptr) {
        throw error{"expected a namespace to set `" + target.attribute + "` in, found " +
                    std::string(object.type_name())};
      }
      space->set(budget_, target.attribute, v);
      break;
    }
    case assignment_target::kind::tuple: {
      const std::vector<value> parts = iterate(budget_, v);
      if (parts.size() != target.parts.size()) {
        throw error{"expected " + std::to_string(target.parts.size()) + " values to unpack, found " +
                    std::to_string(parts.size())};
      }
      for (std::size_t i = 0; i < parts.size(); ++i) assign(target.parts[i], parts[i]);
    }
  }
}

value interpreter::run_macro(const statement& macro, const std::shared_ptr<variable_scope>& around,
                             call_arguments arguments) {
  const depth_guard level(budget_);
  const std::uint32_t call_line = line_;
  const macro_signature& signature = macro.signature;
  const std::string title = "macro `" + signature.name + "`";
  const std::shared_ptr<variable_scope> caller = std::exchange(scope_, std::make_shared<variable_scope>(around));
  auto& positional = arguments.positional;
  for (std::size_t i = 0; i < signature.parameters.size(); ++i) {
    const macro_parameter& parameter = signature.parameters[i];
    const std::string& name = program_.names[parameter.variable];
    const auto named = std::find_if(arguments.keyword.begin(), arguments.keyword.end(),
                                    [&](const auto& k) { return k.first == name; });
    if (i < positional.size()) {
      if (named != arguments.keyword.end()) throw error{title + " got parameter `" + name + "` twice"};
      set(parameter.variable, positional[i]);
    } else if (named != arguments.keyword.end()) {
      set(parameter.variable, std::move(named->second));
      arguments.keyword.erase(named);
    } else if (parameter.fallback != nullptr) {
      set(parameter.variable, evaluate(*parameter.fallback));
    } else {
      set(parameter.variable, value::undefined("parameter '" + name + "' was not provided"));
    }
  }
  bind_surplus(macro, arguments);
  text_builder out(budget_);
  text_builder* const outer = std::exchange(out_, &out);
  execute(macro.bodies[0]);
  out_ = outer;
  scope_ = caller;
  line_ = call_line;
  return value::string(budget_, out.take());
}

void interpreter::bind_surplus(const statement& macro, call_arguments& arguments) {
  const macro_signature& signature = macro.signature;
  const std::string title = "macro `" + signature.name + "`";
  auto& positional = arguments.positional;
  auto& keyword = arguments.keyword;
  if (signature.uses_caller) {
    const auto passed = std::find_if(keyword.begin(), keyword.end(), [](const auto& k) { return k.first == "caller"; });
    set(*program_.find_name("caller"),
        passed != keyword.end() ? passed->second : value::undefined("No caller defined"));
    if (passed != keyword.end()) keyword.erase(passed);
  }
  const std::size_t known = std::min(positional.size(), signature.parameters.size());
  positional.erase(positional.begin(), positional.begin() + static_cast<std::ptrdiff_t>(known));
  if (signature.uses_kwargs) {
    std::vector<std::pair<value, value>> entries;
    for (auto& [name, v] : keyword) entries.emplace_back(value::string(budget_, name), std::move(v));
    set(*program_.find_name("kwargs"), value::dict(budget_, std::move(entries)));
  } else if (!keyword.empty()) {
    throw error{title + " has no parameter `" + keyword.front().first + "`"};
  }
  if (signature.uses_varargs) {
    set(*program_.find_name("varargs"), value::tuple(budget_, std::move(positional)));
  } else if (!positional.empty()) {
    throw error{title + " takes at most " + std::to_string(signature.parameters.size()) + " arguments"};
  }
}

// -- expressions

value interpreter::evaluate(const expression& e) {
  using enum expression::kind;
  const depth_guard depth(budget_);
  budget_.step();
  switch (e.type) {
    case constant:
      return e.literal;
    case name:
      return look_up(e.variable);
    case list:
    case tuple:
      return evaluate_list(e);
    case dict:
      return evaluate_dict(e);
    case negate:
      return apply_sign(true, evaluate(*e.operands[0]));
    case plus:
      return apply_sign(false, evaluate(*e.operands[0]));
    case logical_not:
      return value::boolean(!evaluate(*e.operands[0]).truth());
    case logical_and: {
      value left = evaluate(*e.operands[0]);
      return left.truth() ? evaluate(*e.operands[1]) : left;
    }
    case logical_or: {
      value left = evaluate(*e.operands[0]);
      return left.truth() ? left : evaluate(*e.operands[1]);
    }
    case concatenate:
      return evaluate_concatenation(e);
    case compare:
      return evaluate_comparison(e);
    case conditional:
      return evaluate_conditional(e);
    case attribute:
      return this->attribute(evaluate(*e.operands[0]), e.text);
    case item: {
      const value object = evaluate(*e.operands[0]);
      return this->item(object, evaluate(*e.operands[1]));
    }
    case slice:
      return evaluate_slice(e);
    case call:
      return evaluate_call(e);
    case filter:
      return apply_filters(e, nullptr);
    case test: {
      const value subject = evaluate(*e.operands[0]);
      call_arguments arguments = evaluate_arguments(e.arguments);
      if (e.native == nullptr) fail_unknown("test", e.text, e.line);
      return apply_native(e.native, e.text, subject, arguments);
    }
    default:
      return evaluate_arithmetic(e);
  }
}

value interpreter::evaluate_list(const expression& e) {
  std::vector<value> items;
  items.reserve(e.operands.size());
  for (const expression* operand : e.operands) items.push_back(evaluate(*operand));
  return e.type == expression::kind::tuple ? value::tuple(budget_, std::move(items))
                                           : value::list(budget_, std::move(items));
}

value interpreter::evaluate_dict(const expression& e) {
  std::vector<std::pair<value, value>> entries;
  for (std::size_t i = 0; i < e.operands.size(); i += 2) {
    value key = evaluate(*e.operands[i]);
    entries.emplace_back(std::move(key), evaluate(*e.operands[i + 1]));
  }
  return value::dict(budget_, std::move(entries));
}

value interpreter::evaluate_arithmetic(const expression& e) {
  const value left = evaluate(*e.operands[0]);
  const value right = evaluate(*e.operands[1]);
  return calculate(budget_, e.type, left, right);
}

value interpreter::evaluate_concatenation(const expression& e) {
  text_builder out(budget_);
  for (const expression* operand : e.operands) out.append_value(evaluate(*operand));
  return value::string(budget_, out.take());
}

value interpreter::evaluate_comparison(const expression& e) {
  value left = evaluate(*e.operands[0]);
  for (std::size_t i = 0; i < e.comparisons.size(); ++i) {
    value right = evaluate(*e.operands[i + 1]);
    if (!compare(e.comparisons[i], left, right)) return value::boolean(false);
    left = std::move(right);
  }
  return value::boolean(true);
}

bool interpreter::compare(expression::comparison comparison, const value& a, const value& b) {
  switch (comparison) {
    case expression::comparison::equal:
      return equal(budget_, a, b);
    case expression::comparison::unequal:
      return !equal(budget_, a, b);
    case expression::comparison::less:
      return less(budget_, a, b);
    case expression::comparison::less_equal:
      return less(budget_, a, b) || equal(budget_, a, b);
    case expression::comparison::greater:
      return less(budget_, b, a);
    case expression::comparison::greater_equal:
      return less(budget_, b, a) || equal(budget_, a, b);
    case expression::comparison::in:
      return contains(budget_, b, a);
    case expression::comparison::not_in:
      return !contains(budget_, b, a);
  }
  return false;
}

value interpreter::evaluate_slice(const expression& e) {
  value parts[4];
  for (std::size_t i = 0; i < 4; ++i) {
    if (e.operands[i] != nullptr) parts[i] = evaluate(*e.operands[i]);
  }
  return take_slice(budget_, parts[0], parts[1], parts[2], parts[3]);
}

value interpreter::evaluate_call(const expression& e) {
  const expression& callee = *e.operands[0];
  if (callee.type == expression::kind::attribute) {
    const value self = evaluate(*callee.operands[0]);
    if (const native_function method = find_method(self, callee.text)) {
      call_arguments arguments = evaluate_arguments(e.arguments);
      line_ = e.line;
      return apply_method(method, callee.text, self, arguments);
    }
    const value function = attribute(self, callee.text);
    if (function.is_undefined() && self.type() != value::kind::object) {
      throw error{"method `" + callee.text.substr(0, 40) + "` of " + std::string(self.type_name()) +
                  " is not supported"};
    }
    call_arguments arguments = evaluate_arguments(e.arguments);
    line_ = e.line;
    return call(function, std::move(arguments));
  }
  const value function = evaluate(callee);
  call_arguments arguments = evaluate_arguments(e.arguments);
  line_ = e.line;
  return call(function, std::move(arguments));
}

value interpreter::evaluate_conditional(const expression& e) {
  if (evaluate(*e.operands[0]).truth()) return evaluate(*e.operands[1]);
  if (e.operands[2] != nullptr) return evaluate(*e.operands[2]);
  return value::undefined("the inline `if` on line " + std::to_string(e.line) +
                          " was false and has no `else`, so its value is undefined");
}

call_arguments interpreter::evaluate_arguments(const std::vector<argument_expression>& arguments) {
  call_arguments out;
  for (const argument_expression& argument : arguments) {
    value v = evaluate(*argument.value);
    switch (argument.type) {
      case argument_expression::kind::positional:
        out.positional.push_back(std::move(v));
        break;
      case argument_expression::kind::keyword:
        out.keyword.emplace_back(argument.name, std::move(v));
        break;
      case argument_expression::kind::spread_list:
        for (value& item : iterate(budget_, v)) out.positional.push_back(std::move(item));
        break;
      case argument_expression::kind::spread_dict:
        if (!v.defined().is_dict()) throw error{"expected a dict after `**`, found " + std::string(v.type_name())};
        for (const auto& [key, item] : v.as_dict().entries) {
          if (!key.is_string()) throw error{"expected str keys after `**`, found " + std::string(key.type_name())};
          out.keyword.emplace_back(key.text(), item);
        }
        break;
    }
  }
  return out;
}

value interpreter::apply_filters(const expression& e, const value* head) {
  const depth_guard depth(budget_);
  const expression* const inner = e.operands[0];
  value self;
  if (inner == nullptr) {
    self = *head;
  } else if (head != nullptr && inner->type == expression::kind::filter) {
    self = apply_filters(*inner, head);
  } else {
    self = evaluate(*inner);
  }
  call_arguments arguments = evaluate_arguments(e.arguments);
  if (e.native == nullptr) fail_unknown("filter", e.text, e.line);
  return apply_native(e.native, e.text, self, arguments);
}

value interpreter::look_up(std::uint32_t variable) {
  for (const variable_scope* scope = scope_.get(); scope != nullptr; scope = scope->parent.get()) {
    budget_.step(scope->variables.size() / 16);
    for (const auto& [known, v] : scope->variables) {
      if (known == variable) return v;
    }
  }
  const std::string& name = program_.names[variable];
  if (const native_function native = find_global(name))
    return value::object(std::make_shared<bound_function>(native, name));
  return value::undefined("'" + name.substr(0, 80) + "' is undefined");
}

// -- for built-ins and objects

value interpreter::attribute(const value& object, std::string_view name) {
  if (object.defined().type() == value::kind::object) return object.as_object()->attribute(*this, name);
  if (const native_function method = find_method(object, name)) {
    return value::object(std::make_shared<bound_function>(method, std::string(name), object));
  }
  if (object.is_dict() && !is_forbidden_attribute(object, name)) {
    if (const value* found = object.as_dict().find(name)) return *found;
  }
  return value::undefined(attribute_missing(object, name));
}

value interpreter::item(const value& object, const value& key) {
  object.defined();
  if (object.is_dict() && is_hashable(key)) {
    if (const value* found = object.as_dict().find(budget_, key)) return *found;
  }
  if ((object.is_list() || object.is_string()) && key.is_integral()) {
    const auto length = static_cast<std::int64_t>(count_elements(object));
    const std::int64_t at = key.as_integer() < 0 ? key.as_integer() + length : key.as_integer();
    if (at >= 0 && at < length) {
      if (object.is_list()) return object.as_list().items[static_cast<std::size_t>(at)];
      const value from = value::integer(at), to = value::integer(at + 1);
      return take_slice(budget_, object, from, to, {});
    }
  }
  if (key.is_string()) {
    if (object.type() == value::kind::object) return object.as_object()->attribute(*this, key.text());
    if (const native_function method = find_method(object, key.text())) {
      return value::object(std::make_shared<bound_function>(method, key.text(), object));
    }
    return value::undefined(attribute_missing(object, key.text()));
  }
  return value::undefined(std::string(object.type_name()) + " object has no such element");
}

value interpreter::call(const value& callee, call_arguments arguments) {
  const depth_guard depth(budget_);
  if (callee.defined().type() != value::kind::object) {
    throw error{"expected something to call, found " + std::string(callee.type_name())};
  }
  return callee.as_object()->call(*this, std::move(arguments));
}

value interpreter::apply_native(native_function native, std::string_view name, const value& self,
                                call_arguments& arguments) {
  budget_.step();
  native_call call{*this, budget_, name, self, arguments};
  return native(call);
}

/// Methods of safe text return safe text; inserted text is escaped.
value interpreter::apply_method(native_function native, std::string_view name, const value& self,
                                call_arguments& arguments) {
  if (!self.is_safe()) return apply_native(native, name, self, arguments);
  const bool escapes = name == "replace";
  for (value& one : arguments.positional) {
    if (escapes && one.is_string()) one = made_safe(budget_, one);
  }
  const value out = apply_native(native, name, self, arguments);
  const auto safe = [&](const value& text) {
    return text.is_string() ? value::safe_string(budget_, text.text()) : text;
  };
  if (!out.is_list()) return safe(out);
  std::vector<value> items;
  for (const value& one : out.as_list().items) items.push_back(safe(one));
  return value::list(budget_, std::move(items));
}

value interpreter::apply_filter(std::string_view name, const value& self, call_arguments& arguments) {
  const native_function native = find_filter(name);
  if (native == nullptr) fail_unknown("filter", name);
  const depth_guard depth(budget_);
  return apply_native(native, name, self, arguments);
}

bool interpreter::apply_test(std::string_view name, const value& self, call_arguments& arguments) {
  const native_function native = find_test(name);
  if (native == nullptr) fail_unknown("test", name);
  const depth_guard depth(budget_);
  return apply_native(native, name, self, arguments).truth();
}

}  // namespace redline::jinja
