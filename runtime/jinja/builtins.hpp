#pragma once

#include <array>
#include <string>
#include <string_view>

#include "runtime/jinja/ast.hpp"
#include "runtime/jinja/object.hpp"

namespace redline::jinja {

class interpreter;

/// What a filter, test, method or function is called with. `self` is the filtered value or the method's object; none
/// for a function.
struct native_call {
  interpreter& engine;
  render_budget& budget;
  std::string_view name;  // for messages
  const value& self;
  call_arguments& arguments;
};

/// nullptr when there is none of this name.
native_function find_filter(std::string_view name);
native_function find_test(std::string_view name);
native_function find_global(std::string_view name);
/// The method of a str or dict; lists have none.
native_function find_method(const value& self, std::string_view name);
/// A name that Python's type has but templates may not use, such as `append`: it hides a dict's item of that name.
bool is_forbidden_attribute(const value& self, std::string_view name);

/// Finds each parameter among positional and keyword arguments; null where absent. Throws for surplus or unknown ones.
void bind_arguments(const native_call& call, const char* const* names, std::size_t count, const value** out);
template<std::size_t N>
std::array<const value*, N> bind_arguments(const native_call& call, const char* const (&names)[N]) {
  std::array<const value*, N> out{};
  bind_arguments(call, names, N, out.data());
  return out;
}
/// Throws when there is any argument.
void expect_no_arguments(const native_call& call);

// Arguments by type; each throws and says what it wanted. `fallback` when null or none.
std::int64_t integer_argument(const native_call& call, const value* v, std::int64_t fallback);
bool boolean_argument(const value* v, bool fallback);
const std::string& text_argument(const native_call& call, const value* v, std::string_view parameter);

/// text.replace(from, to, count); count < 0: all.
std::string replace_text(render_budget& budget, std::string_view text, std::string_view from, std::string_view to,
                         std::int64_t count);
/// Text with &, <, >, ' and " written as HTML has them.
std::string escape_html(render_budget& budget, std::string_view text);
/// A string that is safe as it is, or escaped.
value made_safe(render_budget& budget, const value& text);
/// text * count
value repeat(render_budget& budget, const value& v, std::int64_t count);

}  // namespace redline::jinja
