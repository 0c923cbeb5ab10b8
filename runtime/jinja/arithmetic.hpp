#pragma once

#include "runtime/jinja/ast.hpp"

namespace redline::text {

/// Python's binary operators on numbers, strings and lists; integers have 64 bits and overflow is an error.
jinja_value jinja_arithmetic(jinja_budget& budget, jinja_expression::kind operation, const jinja_value& a,
                             const jinja_value& b);
/// -a or +a
jinja_value jinja_sign(bool negative, const jinja_value& a);
/// value[start:stop:step]; a bound that is none is left out.
jinja_value jinja_slice(jinja_budget& budget, const jinja_value& value, const jinja_value& start,
                        const jinja_value& stop, const jinja_value& step);

}  // namespace redline::text
