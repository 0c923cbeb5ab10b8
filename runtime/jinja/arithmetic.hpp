#pragma once

#include "runtime/jinja/ast.hpp"

namespace redline::jinja {

/// Python's binary operators on numbers, strings and lists; integers have 64 bits and overflow is an error.
value calculate(render_budget& budget, expression::kind operation, const value& a, const value& b);
/// Computes -a or +a.
value apply_sign(bool negative, const value& a);
/// Computes value[start:stop:step]; a bound that is none counts as left out.
value take_slice(render_budget& budget, const value& v, const value& start, const value& stop, const value& step);

}  // namespace redline::jinja
