#pragma once

#include <array>
#include <string>
#include <string_view>

#include "runtime/jinja/ast.hpp"
#include "runtime/jinja/object.hpp"

namespace redline::jinja {

class interpreter;

/// The input of a filter, test, method or function. `self`: the filtered value or method's object, else none.
struct native_call {
  interpreter& engine;
  render_budget& budget;
  std::string_view name;  // for messages
  const value& self;
  call_arguments& arguments;
};

/// nullptr if the name is unknown.
native_function find_filter(std::string_view name);
native_function find_test(std::string_view name);
native_function find_global(std::string_view name);
/// The method of a str or dict; lists have none.
native_function find_method(const value& self, std::string_view name);
/// Whether Python's type has a name that templates may not use, such as `append`; it hides a dict's item of that name.
bool is_forbidden_attribute(const value& self, std::string_view name);

/// Finds each parameter among positional and keyword arguments; null if absent. Throws for surplus or unknown ones.
void bind_arguments(const native_call& call, const char* const* names, std::size_t count, const value** out);
template<std::size_t N>
std::array<const value*, N> bind_arguments(const native_call& call, const char* const (&names)[N]) {
  std::array<const value*, N> out{};
  bind_arguments(call, names, N, out.data());
  return out;
}
/// Throws if there is any argument.
void expect_no_arguments(const native_call& call);

// Converts arguments by type; each function throws with what it expected. `fallback` replaces null or none.
std::int64_t integer_argument(const native_call& call, const value* v, std::int64_t fallback);
bool boolean_argument(const value* v, bool fallback);
const std::string& text_argument(const native_call& call, const value* v, std::string_view parameter);

/// Computes text.replace(from, to, count); count < 0 means all.
std::string replace_text(render_budget& budget, std::string_view text, std::string_view from, std::string_view to,
                         std::int64_t count);
/// Escapes &, <, >, ' and " as in HTML.
std::string escape_html(render_budget& budget, std::string_view text);
/// A safe string unchanged, or else the escaped text.
value made_safe(render_budget& budget, const value& text);
/// text * count
value repeat(render_budget& budget, const value& v, std::int64_t count);

}  // namespace redline::jinja
