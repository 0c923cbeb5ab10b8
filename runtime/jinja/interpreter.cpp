#include "runtime/jinja/interpreter.hpp"

#include <algorithm>
#include <utility>

#include "runtime/jinja/arithmetic.hpp"
#include "runtime/jinja/text.hpp"

namespace redline::text {
namespace {

using expression = jinja_expression;
using statement = jinja_statement;

constexpr std::size_t kept_bytes = 256;  // roughly, of a scope or namespace that stays to the end

/// The `loop` of a for block. Items behind a filter are tested as late as Python's generator would test them, because
/// the body may change what the filter looks at.
class jinja_loop final : public jinja_object {
 public:
  jinja_loop(jinja_budget& budget, const statement& of, const std::shared_ptr<jinja_scope>& around,
             std::uint32_t nesting, std::vector<jinja_value> source, std::uint32_t depth)
      : of_(of),
        around_(around),
        nesting_(nesting + 1),
        depth_(depth),
        source_(std::move(source)),
        charge_(budget, source_.size() * 2 * sizeof(jinja_value)) {
    if (of_.values[1] == nullptr) items_ = std::exchange(source_, {});
  }

  [[nodiscard]] std::string_view type_name() const override { return "LoopContext"; }
  [[nodiscard]] std::uint32_t nesting() const override { return nesting_; }
  [[nodiscard]] bool is_callable() const override { return true; }

  bool advance(jinja_interpreter& interpreter) {
    if (!has(interpreter, static_cast<std::size_t>(index_ + 1))) return false;
    ++index_;
    return true;
  }
  [[nodiscard]] const jinja_value& current() const { return items_[static_cast<std::size_t>(index_)]; }
  [[nodiscard]] std::int64_t index() const { return index_; }

  jinja_value attribute(jinja_interpreter& interpreter, std::string_view name) override;
  jinja_value call(jinja_interpreter& interpreter, jinja_arguments arguments) override;

  bool is_change(jinja_budget& budget, std::vector<jinja_value> values) {
    if (is_over_) throw jinja_error{"wanted loop.changed inside its loop"};
    const jinja_value tuple = jinja_value::tuple(budget, std::move(values));
    const bool same = has_seen_ && jinja_equal(budget, tuple, seen_);
    seen_ = tuple;
    has_seen_ = true;
    return !same;
  }

  /// The loop is left; what changed() remembers could point back here.
  void finish() {
    is_over_ = true;
    seen_ = {};
  }

 private:
  /// Whether the loop has an item at `index`; tests as many further source items as it takes to know.
  bool has(jinja_interpreter& interpreter, std::size_t index) {
    while (items_.size() <= index && next_source_ < source_.size()) {
      const jinja_value& candidate = source_[next_source_++];
      if (interpreter.passes(of_, scope_around(), candidate)) items_.push_back(candidate);
    }
    return index < items_.size();
  }
  std::int64_t count(jinja_interpreter& interpreter) {
    has(interpreter, SIZE_MAX);
    return static_cast<std::int64_t>(items_.size());
  }

  [[nodiscard]] std::shared_ptr<jinja_scope> scope_around() const {
    std::shared_ptr<jinja_scope> around = around_.lock();
    if (around == nullptr) throw jinja_error{"wanted a loop that still runs"};
    return around;
  }

  const statement& of_;
  // Weak, so that loops kept by scopes that are kept by loops never make a chain.
  std::weak_ptr<jinja_scope> around_;
  std::uint32_t nesting_;
  std::uint32_t depth_;  // 0 for the outermost of a recursive loop
  std::int64_t index_ = -1;
  std::vector<jinja_value> items_;   // that pass the filter, as far as known
  std::vector<jinja_value> source_;  // empty when there is no filter
  std::size_t next_source_ = 0;
  jinja_value seen_;  // by changed()
  bool has_seen_ = false;
  bool is_over_ = false;
  jinja_charge charge_;
};

jinja_value loop_cycle(jinja_call& call) {
  const auto& loop = static_cast<const jinja_loop&>(*call.self.as_object());
  const auto& choices = call.arguments.positional;
  if (choices.empty()) throw jinja_error{"wanted values for loop.cycle, found none"};
  return choices[static_cast<std::size_t>(loop.index()) % choices.size()];
}

jinja_value loop_changed(jinja_call& call) {
  auto& loop = static_cast<jinja_loop&>(*call.self.as_object());
  return jinja_value::boolean(loop.is_change(call.budget, std::move(call.arguments.positional)));
}

jinja_value jinja_loop::attribute(jinja_interpreter& interpreter, std::string_view name) {
  const auto at = static_cast<std::size_t>(index_);
  if (name == "index") return jinja_value::integer(index_ + 1);
  if (name == "index0") return jinja_value::integer(index_);
  if (name == "first") return jinja_value::boolean(index_ == 0);
  if (name == "last") return jinja_value::boolean(!has(interpreter, at + 1));
  if (name == "length") return jinja_value::integer(count(interpreter));
  if (name == "revindex") return jinja_value::integer(count(interpreter) - index_);
  if (name == "revindex0") return jinja_value::integer(count(interpreter) - index_ - 1);
  if (name == "depth") return jinja_value::integer(depth_ + 1);
  if (name == "depth0") return jinja_value::integer(depth_);
  if (name == "previtem") return index_ > 0 ? items_[at - 1] : jinja_value::undefined("there is no previous item");
  if (name == "nextitem")
    return has(interpreter, at + 1) ? items_[at + 1] : jinja_value::undefined("there is no next item");
  const auto bound = [&](jinja_native native) {
    return jinja_value::object(
        std::make_shared<jinja_function>(native, std::string(name), jinja_value::object(shared_from_this())));
  };
  if (name == "cycle") return bound(loop_cycle);
  if (name == "changed") return bound(loop_changed);
  return jinja_object::attribute(interpreter, name);
}

jinja_value jinja_loop::call(jinja_interpreter& interpreter, jinja_arguments arguments) {
  if (!of_.recursive) throw jinja_error{"wanted `recursive` on the loop that is called"};
  if (arguments.positional.size() != 1 || !arguments.keyword.empty()) {
    throw jinja_error{"wanted one argument of loop()"};
  }
  return jinja_value::string(interpreter.budget(),
                             interpreter.run_loop(of_, scope_around(), arguments.positional[0], depth_ + 1));
}

class jinja_macro final : public jinja_object {
 public:
  jinja_macro(const statement& of, std::shared_ptr<jinja_scope> around) : of_(of), around_(std::move(around)) {}
  [[nodiscard]] std::string_view type_name() const override { return "Macro"; }
  [[nodiscard]] bool is_callable() const override { return true; }
  jinja_value attribute(jinja_interpreter& interpreter, std::string_view name) override {
    if (name == "name") return jinja_value::string(interpreter.budget(), of_.signature.name);
    return jinja_object::attribute(interpreter, name);
  }
  jinja_value call(jinja_interpreter& interpreter, jinja_arguments arguments) override {
    return interpreter.run_macro(of_, around_, std::move(arguments));
  }

 private:
  const statement& of_;
  std::shared_ptr<jinja_scope> around_;
};

std::string attribute_missing(const jinja_value& object, std::string_view name) {
  return "'" + std::string(object.type_name()) + " object' has no attribute '" + std::string(name.substr(0, 80)) + "'";
}

bool is_hashable(const jinja_value& key) { return !key.is_dict() && !(key.is_list() && !key.as_list().is_tuple); }

}  // namespace

jinja_value jinja_object::attribute(jinja_interpreter&, std::string_view name) {
  return jinja_value::undefined("'" + std::string(type_name()) + " object' has no attribute '" +
                                std::string(name.substr(0, 80)) + "'");
}

jinja_value jinja_object::call(jinja_interpreter&, jinja_arguments) {
  throw jinja_error{"wanted something to call, found " + std::string(type_name())};
}

jinja_value jinja_namespace::attribute(jinja_interpreter& interpreter, std::string_view name) {
  for (const auto& [key, value] : attributes_) {
    if (key == name) return value;
  }
  return jinja_object::attribute(interpreter, name);
}

void jinja_namespace::set(jinja_budget& budget, std::string_view name, jinja_value value) {
  budget.step(1 + attributes_.size() / 8);
  for (auto& [key, old] : attributes_) {
    if (key == name) {
      old = std::move(value);
      return;
    }
  }
  budget.acquire(kept_bytes);
  attributes_.emplace_back(name, std::move(value));
}

jinja_value jinja_function::call(jinja_interpreter& interpreter, jinja_arguments arguments) {
  return interpreter.apply_native(native_, name_, self_, arguments);
}

jinja_interpreter::jinja_interpreter(const jinja_program& program, jinja_budget& budget, std::int64_t now)
    : program_(program), budget_(budget), now_(now), scope_(std::make_shared<jinja_scope>(nullptr)) {
  kept_scopes_.push_back(scope_);
}

jinja_interpreter::~jinja_interpreter() {
  // The scopes around the kept ones too, or a chain of scopes and macros would be destroyed recursively.
  for (const auto& kept : kept_scopes_) {
    for (jinja_scope* scope = kept.get(); scope != nullptr; scope = scope->parent.get()) scope->variables.clear();
  }
  for (const auto& object : kept_namespaces_) object->clear();
}

void jinja_interpreter::keep(std::shared_ptr<jinja_namespace> object) {
  budget_.acquire(kept_bytes);
  kept_namespaces_.push_back(std::move(object));
}

void jinja_interpreter::keep_scope() {
  budget_.acquire(kept_bytes);
  kept_scopes_.push_back(scope_);
}

void jinja_interpreter::define(const std::string& name, jinja_value value) {
  if (const auto variable = program_.find_name(name)) set(*variable, std::move(value));
}

std::string jinja_interpreter::render() {
  jinja_text_builder out(budget_, budget_.limits().output_bytes_max);
  out_ = &out;
  execute(program_.body);
  out_ = nullptr;
  return out.take();
}

// -- statements

jinja_interpreter::flow jinja_interpreter::execute(const jinja_block& block) {
  for (const statement* s : block) {
    if (const flow f = execute(*s); f != flow::normal) return f;
  }
  return flow::normal;
}

jinja_interpreter::flow jinja_interpreter::execute(const statement& s) {
  const jinja_depth depth(budget_);
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
      return execute_loop(s, evaluate(*s.values[0]), 0);
    case statement::kind::assign:
      execute_assignment(s);
      break;
    case statement::kind::assign_block: {
      jinja_value value = jinja_value::string(budget_, capture(s.bodies[0]));
      if (s.values[0] != nullptr) value = apply_filters(*s.values[0], &value);
      assign(s.targets[0], value);
      break;
    }
    case statement::kind::macro:
      keep_scope();
      assign(s.targets[0], jinja_value::object(std::make_shared<jinja_macro>(s, scope_)));
      break;
    case statement::kind::call_block:
      execute_call_block(s);
      break;
    case statement::kind::filter_block: {
      const jinja_value value = jinja_value::string(budget_, capture(s.bodies[0]));
      out_->append_value(apply_filters(*s.values[0], &value));
      break;
    }
    case statement::kind::with_block: {
      std::vector<jinja_value> values;
      for (const expression* value : s.values) values.push_back(evaluate(*value));
      const std::shared_ptr<jinja_scope> around = scope_;
      scope_ = std::make_shared<jinja_scope>(around);
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

jinja_interpreter::flow jinja_interpreter::execute_choice(const statement& s) {
  for (std::size_t i = 0; i < s.values.size(); ++i) {
    if (evaluate(*s.values[i]).truth()) return execute(s.bodies[i]);
  }
  return s.bodies.size() > s.values.size() ? execute(s.bodies.back()) : flow::normal;
}

jinja_interpreter::flow jinja_interpreter::execute_loop(const statement& s, const jinja_value& items,
                                                        std::uint32_t depth) {
  const std::shared_ptr<jinja_scope> around = scope_;
  const auto loop =
      std::make_shared<jinja_loop>(budget_, s, around, items.nesting(), jinja_iterate(budget_, items), depth);
  const auto variable = program_.find_name("loop");
  struct finisher {
    jinja_loop& loop;
    ~finisher() { loop.finish(); }
  } const at_the_end{*loop};
  bool any = false;  // as in Jinja, a round that break or continue ends does not keep `else` from running
  while (loop->advance(*this)) {
    budget_.step();
    scope_ = std::make_shared<jinja_scope>(around);
    if (variable) set(*variable, jinja_value::object(loop));
    assign(s.targets[0], loop->current());
    const flow f = execute(s.bodies[0]);
    scope_ = around;
    any |= f == flow::normal;
    if (f == flow::leave_loop) break;
  }
  return any ? flow::normal : execute_scoped(s.bodies[1]);
}

std::string jinja_interpreter::run_loop(const statement& loop, const std::shared_ptr<jinja_scope>& around,
                                        const jinja_value& items, std::uint32_t depth) {
  const jinja_depth level(budget_);
  const std::shared_ptr<jinja_scope> caller = std::exchange(scope_, around);
  jinja_text_builder out(budget_);
  jinja_text_builder* const outer = std::exchange(out_, &out);
  execute_loop(loop, items, depth);
  out_ = outer;
  scope_ = caller;
  return out.take();
}

bool jinja_interpreter::passes(const statement& loop, const std::shared_ptr<jinja_scope>& around,
                               const jinja_value& item) {
  const std::shared_ptr<jinja_scope> inner = std::exchange(scope_, std::make_shared<jinja_scope>(around));
  assign(loop.targets[0], item);
  const bool passed = evaluate(*loop.values[1]).truth();
  scope_ = inner;
  return passed;
}

void jinja_interpreter::execute_assignment(const statement& s) { assign(s.targets[0], evaluate(*s.values[0])); }

void jinja_interpreter::execute_call_block(const statement& s) {
  const expression& call_expression = *s.values[0];
  const jinja_value callee = evaluate(*call_expression.operands[0]);
  jinja_arguments arguments = evaluate_arguments(call_expression.arguments);
  keep_scope();
  arguments.keyword.emplace_back("caller", jinja_value::object(std::make_shared<jinja_macro>(s, scope_)));
  out_->append_value(call(callee, std::move(arguments)));
}

jinja_interpreter::flow jinja_interpreter::execute_scoped(const jinja_block& block) {
  if (block.empty()) return flow::normal;
  const std::shared_ptr<jinja_scope> around = scope_;
  scope_ = std::make_shared<jinja_scope>(around);
  const flow f = execute(block);
  scope_ = around;
  return f;
}

std::string jinja_interpreter::capture(const jinja_block& block) {
  jinja_text_builder out(budget_);
  jinja_text_builder* const outer = std::exchange(out_, &out);
  execute_scoped(block);
  out_ = outer;
  return out.take();
}

void jinja_interpreter::set(std::uint32_t variable, jinja_value value) {
  budget_.step(scope_->variables.size() / 16);
  for (auto& [known, old] : scope_->variables) {
    if (known == variable) {
      old = std::move(value);
      return;
    }
  }
  scope_->variables.emplace_back(variable, std::move(value));
}

void jinja_interpreter::assign(const jinja_target& target, const jinja_value& value) {
  switch (target.type) {
    case jinja_target::kind::name:
      set(target.variable, value);
      break;
    case jinja_target::kind::attribute: {
      const jinja_value object = look_up(target.variable);
      auto* const space = object.type() == jinja_value::kind::object
                              ? dynamic_cast<jinja_namespace*>(object.as_object().get())
                              : nullptr;
      if (space == nullptr) {
        throw jinja_error{"wanted a namespace to set `" + target.attribute + "` in, found " +
                          std::string(object.type_name())};
      }
      space->set(budget_, target.attribute, value);
      break;
    }
    case jinja_target::kind::tuple: {
      const std::vector<jinja_value> parts = jinja_iterate(budget_, value);
      if (parts.size() != target.parts.size()) {
        throw jinja_error{"wanted " + std::to_string(target.parts.size()) + " values to unpack, found " +
                          std::to_string(parts.size())};
      }
      for (std::size_t i = 0; i < parts.size(); ++i) assign(target.parts[i], parts[i]);
    }
  }
}

jinja_value jinja_interpreter::run_macro(const statement& macro, const std::shared_ptr<jinja_scope>& around,
                                         jinja_arguments arguments) {
  const jinja_depth level(budget_);
  const std::uint32_t call_line = line_;
  const jinja_signature& signature = macro.signature;
  const std::string title = "macro `" + signature.name + "`";
  const std::shared_ptr<jinja_scope> caller = std::exchange(scope_, std::make_shared<jinja_scope>(around));
  auto& positional = arguments.positional;
  for (std::size_t i = 0; i < signature.parameters.size(); ++i) {
    const jinja_parameter& parameter = signature.parameters[i];
    const std::string& name = program_.names[parameter.variable];
    const auto named = std::find_if(arguments.keyword.begin(), arguments.keyword.end(),
                                    [&](const auto& k) { return k.first == name; });
    if (i < positional.size()) {
      if (named != arguments.keyword.end()) throw jinja_error{title + " got parameter `" + name + "` twice"};
      set(parameter.variable, positional[i]);
    } else if (named != arguments.keyword.end()) {
      set(parameter.variable, std::move(named->second));
      arguments.keyword.erase(named);
    } else if (parameter.fallback != nullptr) {
      set(parameter.variable, evaluate(*parameter.fallback));
    } else {
      set(parameter.variable, jinja_value::undefined("parameter '" + name + "' was not provided"));
    }
  }
  bind_surplus(macro, arguments);
  jinja_text_builder out(budget_);
  jinja_text_builder* const outer = std::exchange(out_, &out);
  execute(macro.bodies[0]);
  out_ = outer;
  scope_ = caller;
  line_ = call_line;
  return jinja_value::string(budget_, out.take());
}

void jinja_interpreter::bind_surplus(const statement& macro, jinja_arguments& arguments) {
  const jinja_signature& signature = macro.signature;
  const std::string title = "macro `" + signature.name + "`";
  auto& positional = arguments.positional;
  auto& keyword = arguments.keyword;
  if (signature.uses_caller) {
    const auto passed = std::find_if(keyword.begin(), keyword.end(), [](const auto& k) { return k.first == "caller"; });
    set(*program_.find_name("caller"),
        passed != keyword.end() ? passed->second : jinja_value::undefined("No caller defined"));
    if (passed != keyword.end()) keyword.erase(passed);
  }
  const std::size_t known = std::min(positional.size(), signature.parameters.size());
  positional.erase(positional.begin(), positional.begin() + static_cast<std::ptrdiff_t>(known));
  if (signature.uses_kwargs) {
    std::vector<std::pair<jinja_value, jinja_value>> entries;
    for (auto& [name, value] : keyword) entries.emplace_back(jinja_value::string(budget_, name), std::move(value));
    set(*program_.find_name("kwargs"), jinja_value::dict(budget_, std::move(entries)));
  } else if (!keyword.empty()) {
    throw jinja_error{title + " has no parameter `" + keyword.front().first + "`"};
  }
  if (signature.uses_varargs) {
    set(*program_.find_name("varargs"), jinja_value::tuple(budget_, std::move(positional)));
  } else if (!positional.empty()) {
    throw jinja_error{title + " takes at most " + std::to_string(signature.parameters.size()) + " arguments"};
  }
}

// -- expressions

jinja_value jinja_interpreter::evaluate(const expression& e) {
  using enum expression::kind;
  const jinja_depth depth(budget_);
  budget_.step();
  switch (e.type) {
    case constant:
      return e.value;
    case name:
      return look_up(e.variable);
    case list:
    case tuple:
      return evaluate_list(e);
    case dict:
      return evaluate_dict(e);
    case negate:
      return jinja_sign(true, evaluate(*e.operands[0]));
    case plus:
      return jinja_sign(false, evaluate(*e.operands[0]));
    case logical_not:
      return jinja_value::boolean(!evaluate(*e.operands[0]).truth());
    case logical_and: {
      jinja_value left = evaluate(*e.operands[0]);
      return left.truth() ? evaluate(*e.operands[1]) : left;
    }
    case logical_or: {
      jinja_value left = evaluate(*e.operands[0]);
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
      const jinja_value object = evaluate(*e.operands[0]);
      return this->item(object, evaluate(*e.operands[1]));
    }
    case slice:
      return evaluate_slice(e);
    case call:
      return evaluate_call(e);
    case filter:
      return apply_filters(e, nullptr);
    case test: {
      const jinja_value subject = evaluate(*e.operands[0]);
      jinja_arguments arguments = evaluate_arguments(e.arguments);
      return apply_native(e.native, e.text, subject, arguments);
    }
    default:
      return evaluate_arithmetic(e);
  }
}

jinja_value jinja_interpreter::evaluate_list(const expression& e) {
  std::vector<jinja_value> items;
  items.reserve(e.operands.size());
  for (const expression* operand : e.operands) items.push_back(evaluate(*operand));
  return e.type == expression::kind::tuple ? jinja_value::tuple(budget_, std::move(items))
                                           : jinja_value::list(budget_, std::move(items));
}

jinja_value jinja_interpreter::evaluate_dict(const expression& e) {
  std::vector<std::pair<jinja_value, jinja_value>> entries;
  for (std::size_t i = 0; i < e.operands.size(); i += 2) {
    jinja_value key = evaluate(*e.operands[i]);
    entries.emplace_back(std::move(key), evaluate(*e.operands[i + 1]));
  }
  return jinja_value::dict(budget_, std::move(entries));
}

jinja_value jinja_interpreter::evaluate_arithmetic(const expression& e) {
  const jinja_value left = evaluate(*e.operands[0]);
  const jinja_value right = evaluate(*e.operands[1]);
  return jinja_arithmetic(budget_, e.type, left, right);
}

jinja_value jinja_interpreter::evaluate_concatenation(const expression& e) {
  jinja_text_builder out(budget_);
  for (const expression* operand : e.operands) out.append_value(evaluate(*operand));
  return jinja_value::string(budget_, out.take());
}

jinja_value jinja_interpreter::evaluate_comparison(const expression& e) {
  jinja_value left = evaluate(*e.operands[0]);
  for (std::size_t i = 0; i < e.comparisons.size(); ++i) {
    jinja_value right = evaluate(*e.operands[i + 1]);
    if (!compare(e.comparisons[i], left, right)) return jinja_value::boolean(false);
    left = std::move(right);
  }
  return jinja_value::boolean(true);
}

bool jinja_interpreter::compare(expression::comparison comparison, const jinja_value& a, const jinja_value& b) {
  switch (comparison) {
    case expression::comparison::equal:
      return jinja_equal(budget_, a, b);
    case expression::comparison::unequal:
      return !jinja_equal(budget_, a, b);
    case expression::comparison::less:
      return jinja_less(budget_, a, b);
    case expression::comparison::less_equal:
      return jinja_less(budget_, a, b) || jinja_equal(budget_, a, b);
    case expression::comparison::greater:
      return jinja_less(budget_, b, a);
    case expression::comparison::greater_equal:
      return jinja_less(budget_, b, a) || jinja_equal(budget_, a, b);
    case expression::comparison::in:
      return jinja_contains(budget_, b, a);
    case expression::comparison::not_in:
      return !jinja_contains(budget_, b, a);
  }
  return false;
}

jinja_value jinja_interpreter::evaluate_slice(const expression& e) {
  jinja_value parts[4];
  for (std::size_t i = 0; i < 4; ++i) {
    if (e.operands[i] != nullptr) parts[i] = evaluate(*e.operands[i]);
  }
  return jinja_slice(budget_, parts[0], parts[1], parts[2], parts[3]);
}

jinja_value jinja_interpreter::evaluate_call(const expression& e) {
  const expression& callee = *e.operands[0];
  if (callee.type == expression::kind::attribute) {
    const jinja_value self = evaluate(*callee.operands[0]);
    if (const jinja_native method = find_method(self, callee.text)) {
      jinja_arguments arguments = evaluate_arguments(e.arguments);
      line_ = e.line;
      return apply_native(method, callee.text, self, arguments);
    }
    const jinja_value function = attribute(self, callee.text);
    jinja_arguments arguments = evaluate_arguments(e.arguments);
    line_ = e.line;
    return call(function, std::move(arguments));
  }
  const jinja_value function = evaluate(callee);
  jinja_arguments arguments = evaluate_arguments(e.arguments);
  line_ = e.line;
  return call(function, std::move(arguments));
}

jinja_value jinja_interpreter::evaluate_conditional(const expression& e) {
  if (evaluate(*e.operands[0]).truth()) return evaluate(*e.operands[1]);
  if (e.operands[2] != nullptr) return evaluate(*e.operands[2]);
  return jinja_value::undefined("the inline `if` on line " + std::to_string(e.line) +
                                " was false and has no `else`, so its value is undefined");
}

jinja_arguments jinja_interpreter::evaluate_arguments(const std::vector<jinja_argument>& arguments) {
  jinja_arguments out;
  for (const jinja_argument& argument : arguments) {
    jinja_value value = evaluate(*argument.value);
    switch (argument.type) {
      case jinja_argument::kind::positional:
        out.positional.push_back(std::move(value));
        break;
      case jinja_argument::kind::keyword:
        out.keyword.emplace_back(argument.name, std::move(value));
        break;
      case jinja_argument::kind::spread_list:
        for (jinja_value& item : jinja_iterate(budget_, value)) out.positional.push_back(std::move(item));
        break;
      case jinja_argument::kind::spread_dict:
        if (!value.defined().is_dict())
          throw jinja_error{"wanted a dict after `**`, found " + std::string(value.type_name())};
        for (const auto& [key, item] : value.as_dict().entries) {
          if (!key.is_string()) throw jinja_error{"wanted str keys after `**`, found " + std::string(key.type_name())};
          out.keyword.emplace_back(key.text(), item);
        }
        break;
    }
  }
  return out;
}

jinja_value jinja_interpreter::apply_filters(const expression& e, const jinja_value* head) {
  const jinja_depth depth(budget_);
  const expression* const inner = e.operands[0];
  jinja_value self;
  if (inner == nullptr) {
    self = *head;
  } else if (head != nullptr && inner->type == expression::kind::filter) {
    self = apply_filters(*inner, head);
  } else {
    self = evaluate(*inner);
  }
  jinja_arguments arguments = evaluate_arguments(e.arguments);
  return apply_native(e.native, e.text, self, arguments);
}

jinja_value jinja_interpreter::look_up(std::uint32_t variable) {
  for (const jinja_scope* scope = scope_.get(); scope != nullptr; scope = scope->parent.get()) {
    budget_.step(scope->variables.size() / 16);
    for (const auto& [known, value] : scope->variables) {
      if (known == variable) return value;
    }
  }
  const std::string& name = program_.names[variable];
  if (const jinja_native native = find_global(name))
    return jinja_value::object(std::make_shared<jinja_function>(native, name));
  return jinja_value::undefined("'" + name.substr(0, 80) + "' is undefined");
}

// -- for built-ins and objects

jinja_value jinja_interpreter::attribute(const jinja_value& object, std::string_view name) {
  if (object.defined().type() == jinja_value::kind::object) return object.as_object()->attribute(*this, name);
  if (const jinja_native method = find_method(object, name)) {
    return jinja_value::object(std::make_shared<jinja_function>(method, std::string(name), object));
  }
  if (object.is_dict() && !is_forbidden_attribute(object, name)) {
    if (const jinja_value* found = object.as_dict().find(name)) return *found;
  }
  return jinja_value::undefined(attribute_missing(object, name));
}

jinja_value jinja_interpreter::item(const jinja_value& object, const jinja_value& key) {
  object.defined();
  if (object.is_dict() && is_hashable(key)) {
    if (const jinja_value* found = object.as_dict().find(budget_, key)) return *found;
  }
  if ((object.is_list() || object.is_string()) && key.is_integral()) {
    const auto length = static_cast<std::int64_t>(jinja_length(object));
    const std::int64_t at = key.as_integer() < 0 ? key.as_integer() + length : key.as_integer();
    if (at >= 0 && at < length) {
      if (object.is_list()) return object.as_list().items[static_cast<std::size_t>(at)];
      const jinja_value from = jinja_value::integer(at), to = jinja_value::integer(at + 1);
      return jinja_slice(budget_, object, from, to, {});
    }
  }
  if (key.is_string()) {
    if (object.type() == jinja_value::kind::object) return object.as_object()->attribute(*this, key.text());
    if (const jinja_native method = find_method(object, key.text())) {
      return jinja_value::object(std::make_shared<jinja_function>(method, key.text(), object));
    }
    return jinja_value::undefined(attribute_missing(object, key.text()));
  }
  return jinja_value::undefined(std::string(object.type_name()) + " object has no such element");
}

jinja_value jinja_interpreter::call(const jinja_value& callee, jinja_arguments arguments) {
  const jinja_depth depth(budget_);
  if (callee.defined().type() != jinja_value::kind::object) {
    throw jinja_error{"wanted something to call, found " + std::string(callee.type_name())};
  }
  return callee.as_object()->call(*this, std::move(arguments));
}

jinja_value jinja_interpreter::apply_native(jinja_native native, std::string_view name, const jinja_value& self,
                                            jinja_arguments& arguments) {
  budget_.step();
  jinja_call call{*this, budget_, name, self, arguments};
  return native(call);
}

jinja_value jinja_interpreter::apply_filter(std::string_view name, const jinja_value& self,
                                            jinja_arguments& arguments) {
  const jinja_native native = find_filter(name);
  if (native == nullptr) throw jinja_error{"filter `" + std::string(name.substr(0, 40)) + "` is not supported"};
  const jinja_depth depth(budget_);
  return apply_native(native, name, self, arguments);
}

bool jinja_interpreter::apply_test(std::string_view name, const jinja_value& self, jinja_arguments& arguments) {
  const jinja_native native = find_test(name);
  if (native == nullptr) throw jinja_error{"test `" + std::string(name.substr(0, 40)) + "` is not supported"};
  const jinja_depth depth(budget_);
  return apply_native(native, name, self, arguments).truth();
}

}  // namespace redline::text
