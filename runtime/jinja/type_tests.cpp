#include <algorithm>
#include <iterator>
#include <utility>

#include "runtime/jinja/builtins.hpp"
#include "runtime/jinja/interpreter.hpp"
#include "runtime/jinja/text.hpp"

namespace redline::text {
namespace {

using kind = jinja_value::kind;

/// A test that looks at its subject only.
template<bool (*holds)(const jinja_value&)>
jinja_value plain(jinja_call& call) {
  expect_no_arguments(call);
  return jinja_value::boolean(holds(call.self));
}

bool is_defined(const jinja_value& v) { return !v.is_undefined(); }
bool is_undefined(const jinja_value& v) { return v.is_undefined(); }
bool is_none(const jinja_value& v) { return v.is_none(); }
bool is_boolean(const jinja_value& v) { return v.type() == kind::boolean; }
bool is_true(const jinja_value& v) { return is_boolean(v) && v.as_boolean(); }
bool is_false(const jinja_value& v) { return is_boolean(v) && !v.as_boolean(); }
bool is_integer(const jinja_value& v) { return v.type() == kind::integer; }
bool is_real(const jinja_value& v) { return v.type() == kind::real; }
bool is_number(const jinja_value& v) { return v.is_number(); }
bool is_string(const jinja_value& v) { return v.is_string(); }
bool is_mapping(const jinja_value& v) { return v.is_dict(); }
bool is_iterable(const jinja_value& v) { return v.is_undefined() || v.is_string() || v.is_list() || v.is_dict(); }
bool is_callable(const jinja_value& v) { return v.type() == kind::object && v.as_object()->is_callable(); }

std::int64_t remainder(jinja_call& call, std::int64_t divisor) {
  if (!call.self.defined().is_integral()) {
    throw jinja_error{"wanted an int for the test `" + std::string(call.name) + "`, found " +
                      std::string(call.self.type_name())};
  }
  if (divisor == 0) throw jinja_error{"wanted a divisor other than 0"};
  return divisor == -1 ? 0 : call.self.as_integer() % divisor;
}

jinja_value is_odd(jinja_call& call) {
  expect_no_arguments(call);
  return jinja_value::boolean(remainder(call, 2) != 0);
}

jinja_value is_even(jinja_call& call) {
  expect_no_arguments(call);
  return jinja_value::boolean(remainder(call, 2) == 0);
}

const jinja_value& other(jinja_call& call) {
  const auto [value] = bind_arguments(call, {"other"});
  if (value == nullptr) throw jinja_error{"wanted an argument of the test `" + std::string(call.name) + "`"};
  return *value;
}

jinja_value is_divisible_by(jinja_call& call) {
  return jinja_value::boolean(remainder(call, integer_argument(call, &other(call), 0)) == 0);
}

template<bool (*holds)(jinja_budget&, const jinja_value&, const jinja_value&)>
jinja_value compared(jinja_call& call) {
  return jinja_value::boolean(holds(call.budget, call.self, other(call)));
}

bool equal(jinja_budget& b, const jinja_value& x, const jinja_value& y) { return jinja_equal(b, x, y); }
bool unequal(jinja_budget& b, const jinja_value& x, const jinja_value& y) { return !jinja_equal(b, x, y); }
bool less(jinja_budget& b, const jinja_value& x, const jinja_value& y) { return jinja_less(b, x, y); }
bool less_equal(jinja_budget& b, const jinja_value& x, const jinja_value& y) {
  return jinja_less(b, x, y) || jinja_equal(b, x, y);
}
bool greater(jinja_budget& b, const jinja_value& x, const jinja_value& y) { return jinja_less(b, y, x); }
bool greater_equal(jinja_budget& b, const jinja_value& x, const jinja_value& y) {
  return jinja_less(b, y, x) || jinja_equal(b, x, y);
}
bool in(jinja_budget& b, const jinja_value& x, const jinja_value& y) { return jinja_contains(b, y, x); }
bool same(jinja_budget&, const jinja_value& x, const jinja_value& y) { return x.same_as(y); }

jinja_value is_lower_text(jinja_call& call) {
  expect_no_arguments(call);
  return jinja_value::boolean(is_lower(jinja_str(call.budget, call.self)));
}

jinja_value is_upper_text(jinja_call& call) {
  expect_no_arguments(call);
  return jinja_value::boolean(is_upper(jinja_str(call.budget, call.self)));
}

jinja_value is_filter(jinja_call& call) {
  expect_no_arguments(call);
  return jinja_value::boolean(call.self.is_string() && find_filter(call.self.text()) != nullptr);
}

jinja_value is_test(jinja_call& call) {
  expect_no_arguments(call);
  return jinja_value::boolean(call.self.is_string() && find_test(call.self.text()) != nullptr);
}

constexpr std::pair<std::string_view, jinja_native> tests[] = {
    {"!=", compared<unequal>},
    {"<", compared<less>},
    {"<=", compared<less_equal>},
    {"==", compared<equal>},
    {">", compared<greater>},
    {">=", compared<greater_equal>},
    {"boolean", plain<is_boolean>},
    {"callable", plain<is_callable>},
    {"defined", plain<is_defined>},
    {"divisibleby", is_divisible_by},
    {"eq", compared<equal>},
    {"equalto", compared<equal>},
    {"even", is_even},
    {"false", plain<is_false>},
    {"filter", is_filter},
    {"float", plain<is_real>},
    {"ge", compared<greater_equal>},
    {"greaterthan", compared<greater>},
    {"gt", compared<greater>},
    {"in", compared<in>},
    {"integer", plain<is_integer>},
    {"iterable", plain<is_iterable>},
    {"le", compared<less_equal>},
    {"lessthan", compared<less>},
    {"lower", is_lower_text},
    {"lt", compared<less>},
    {"mapping", plain<is_mapping>},
    {"ne", compared<unequal>},
    {"none", plain<is_none>},
    {"number", plain<is_number>},
    {"odd", is_odd},
    {"sameas", compared<same>},
    {"sequence", plain<is_iterable>},
    {"string", plain<is_string>},
    {"test", is_test},
    {"true", plain<is_true>},
    {"undefined", plain<is_undefined>},
    {"upper", is_upper_text},
};

}  // namespace

jinja_native find_test(std::string_view name) {
  const auto found = std::find_if(std::begin(tests), std::end(tests), [&](const auto& t) { return t.first == name; });
  return found == std::end(tests) ? nullptr : found->second;
}

}  // namespace redline::text
