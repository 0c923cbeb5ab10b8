#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/jinja/value.hpp"

namespace redline::text {

class jinja_interpreter;

/// What a call passes. Names are views into the template.
struct jinja_arguments {
  std::vector<jinja_value> positional;
  std::vector<std::pair<std::string, jinja_value>> keyword;
};

/// Something with identity: a function, a macro, a namespace, a loop.
class jinja_object : public std::enable_shared_from_this<jinja_object> {
 public:
  virtual ~jinja_object() = default;
  [[nodiscard]] virtual std::string_view type_name() const = 0;
  [[nodiscard]] virtual std::uint32_t nesting() const { return 0; }
  [[nodiscard]] virtual bool is_callable() const { return false; }
  /// Undefined by default.
  virtual jinja_value attribute(jinja_interpreter& interpreter, std::string_view name);
  /// Throws by default.
  virtual jinja_value call(jinja_interpreter& interpreter, jinja_arguments arguments);
};

}  // namespace redline::text
