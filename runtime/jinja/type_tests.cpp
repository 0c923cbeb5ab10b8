#include <algorithm>
#include <iterator>
#include <utility>

#include "runtime/jinja/builtins.hpp"
#include "runtime/jinja/interpreter.hpp"
#include "runtime/jinja/text.hpp"

namespace redline::jinja {
namespace {

using kind = value::kind;

/// A test that depends only on its subject.
template<bool (*holds)(const value&)>
value plain(native_call& call) {
  expect_no_arguments(call);
  return value::boolean(holds(call.self));
}

bool is_defined(const value& v) { return !v.is_undefined(); }
bool is_undefined(const value& v) { return v.is_undefined(); }
bool is_none(const value& v) { return v.is_none(); }
bool is_boolean(const value& v) { return v.type() == kind::boolean; }
bool is_true(const value& v) { return is_boolean(v) && v.as_boolean(); }
bool is_false(const value& v) { return is_boolean(v) && !v.as_boolean(); }
bool is_integer(const value& v) { return v.type() == kind::integer; }
bool is_real(const value& v) { return v.type() == kind::real; }
bool is_number(const value& v) { return v.is_number(); }
bool is_string(const value& v) { return v.is_string(); }
bool is_mapping(const value& v) { return v.is_dict(); }
bool is_escaped(const value& v) { return v.is_safe(); }
bool is_iterable(const value& v) { return v.is_undefined() || v.is_string() || v.is_list() || v.is_dict(); }
bool is_callable(const value& v) { return v.type() == kind::object && v.as_object()->is_callable(); }

std::int64_t remainder(native_call& call, std::int64_t divisor) {
  if (!call.self.defined().is_integral()) {
    throw error{"expected an int for the test `" + std::string(call.name) + "`, found " +
                std::string(call.self.type_name())};
  }
  if (divisor == 0) throw error{"expected a divisor other than 0"};
  return divisor == -1 ? 0 : call.self.as_integer() % divisor;
}

value is_odd(native_call& call) {
  expect_no_arguments(call);
  return value::boolean(remainder(call, 2) != 0);
}

value is_even(native_call& call) {
  expect_no_arguments(call);
  return value::boolean(remainder(call, 2) == 0);
}

value is_divisible(native_call& call) {
  const auto [divisor] = bind_arguments(call, {"num"});
  return value::boolean(remainder(call, integer_argument(call, divisor, 0)) == 0);
}

/// Whether the text has letters, and all of them have this case.
template<std::string (*convert)(std::string_view)>
value is_of_case(native_call& call) {
  expect_no_arguments(call);
  const std::string text = to_str(call.budget, call.self);
  call.budget.touch(text.size() * 8);
  return value::boolean(convert(text) == text && lower(text) != upper(text));
}

template<native_function (*find)(std::string_view)>
value is_name_of(native_call& call) {
  expect_no_arguments(call);
  return value::boolean(call.self.is_string() && find(call.self.text()) != nullptr);
}

const value& other(native_call& call) {
  const auto [v] = bind_arguments(call, {"other"});
  if (v == nullptr) throw error{"expected an argument of the test `" + std::string(call.name) + "`"};
  return *v;
}

template<bool (*holds)(render_budget&, const value&, const value&)>
value compared(native_call& call) {
  return value::boolean(holds(call.budget, call.self, other(call)));
}

bool unequal(render_budget& b, const value& x, const value& y) { return !equal(b, x, y); }
bool less_equal(render_budget& b, const value& x, const value& y) { return less(b, x, y) || equal(b, x, y); }
bool greater(render_budget& b, const value& x, const value& y) { return less(b, y, x); }
bool greater_equal(render_budget& b, const value& x, const value& y) { return less(b, y, x) || equal(b, x, y); }
bool in(render_budget& b, const value& x, const value& y) { return contains(b, y, x); }
bool same(render_budget&, const value& x, const value& y) { return x.same_as(y); }

constexpr std::pair<std::string_view, native_function> tests[] = {
    {"!=", compared<unequal>},
    {"<", compared<less>},
    {"<=", compared<less_equal>},
    {"==", compared<equal>},
    {">", compared<greater>},
    {">=", compared<greater_equal>},
    {"boolean", plain<is_boolean>},
    {"callable", plain<is_callable>},
    {"defined", plain<is_defined>},
    {"divisibleby", is_divisible},
    {"eq", compared<equal>},
    {"equalto", compared<equal>},
    {"escaped", plain<is_escaped>},
    {"even", is_even},
    {"false", plain<is_false>},
    {"filter", is_name_of<find_filter>},
    {"float", plain<is_real>},
    {"ge", compared<greater_equal>},
    {"greaterthan", compared<greater>},
    {"gt", compared<greater>},
    {"in", compared<in>},
    {"integer", plain<is_integer>},
    {"iterable", plain<is_iterable>},
    {"le", compared<less_equal>},
    {"lessthan", compared<less>},
    {"lower", is_of_case<lower>},
    {"lt", compared<less>},
    {"mapping", plain<is_mapping>},
    {"ne", compared<unequal>},
    {"none", plain<is_none>},
    {"number", plain<is_number>},
    {"odd", is_odd},
    {"sameas", compared<same>},
    {"sequence", plain<is_iterable>},
    {"string", plain<is_string>},
    {"test", is_name_of<find_test>},
    {"true", plain<is_true>},
    {"undefined", plain<is_undefined>},
    {"upper", is_of_case<upper>},
};

}  // namespace

native_function find_test(std::string_view name) {
  const auto found = std::find_if(std::begin(tests), std::end(tests), [&](const auto& t) { return t.first == name; });
  return found == std::end(tests) ? nullptr : found->second;
}

}  // namespace redline::jinja
