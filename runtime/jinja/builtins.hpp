#pragma once

#include <array>
#include <string>
#include <string_view>

#include "runtime/jinja/ast.hpp"
#include "runtime/jinja/object.hpp"

namespace redline::text {

class jinja_interpreter;

/// What a filter, test, method or function is called with. `self` is the filtered value or the method's object; none
/// for a function.
struct jinja_call {
  jinja_interpreter& interpreter;
  jinja_budget& budget;
  std::string_view name;  // for messages
  const jinja_value& self;
  jinja_arguments& arguments;
};

/// nullptr when there is none of this name.
jinja_native find_filter(std::string_view name);
jinja_native find_test(std::string_view name);
jinja_native find_global(std::string_view name);
/// The method of a str, list or dict.
jinja_native find_method(const jinja_value& self, std::string_view name);
/// A name that Python's type has but templates may not use, such as `append`: it hides a dict's item of that name.
bool is_forbidden_attribute(const jinja_value& self, std::string_view name);

/// Finds each parameter among positional and keyword arguments; null where absent. Throws for surplus or unknown ones.
void bind_arguments(const jinja_call& call, const char* const* names, std::size_t count, const jinja_value** out);
template<std::size_t N>
std::array<const jinja_value*, N> bind_arguments(const jinja_call& call, const char* const (&names)[N]) {
  std::array<const jinja_value*, N> out{};
  bind_arguments(call, names, N, out.data());
  return out;
}
/// Throws when there is any argument.
void expect_no_arguments(const jinja_call& call);

// Arguments by type; each throws and says what it wanted. `fallback` when null or none.
std::int64_t integer_argument(const jinja_call& call, const jinja_value* value, std::int64_t fallback);
bool boolean_argument(const jinja_value* value, bool fallback);
const std::string& text_argument(const jinja_call& call, const jinja_value* value, std::string_view parameter);

/// str % values
std::string jinja_format(jinja_budget& budget, std::string_view format, const jinja_value& values);
/// text.replace(from, to, count); count < 0: all.
std::string jinja_replace(jinja_budget& budget, std::string_view text, std::string_view from, std::string_view to,
                          std::int64_t count);
/// text * count
jinja_value jinja_repeat(jinja_budget& budget, const jinja_value& value, std::int64_t count);
/// text.center(width)
std::string jinja_center(jinja_budget& budget, std::string_view text, std::int64_t width);

}  // namespace redline::text
