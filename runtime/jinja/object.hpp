#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/jinja/value.hpp"

namespace redline::jinja {

class interpreter;

/// The arguments of a call. Names are views into the template.
struct call_arguments {
  std::vector<value> positional;
  std::vector<std::pair<std::string, value>> keyword;
};

/// A value with identity: a function, a macro, a namespace, a loop.
class object_base {
 public:
  virtual ~object_base() = default;
  [[nodiscard]] virtual std::string_view type_name() const = 0;
  [[nodiscard]] virtual std::uint32_t nesting() const { return 0; }
  [[nodiscard]] virtual bool is_callable() const { return false; }
  /// Undefined by default.
  virtual value attribute(interpreter& engine, std::string_view name);
  /// Throws by default.
  virtual value call(interpreter& engine, call_arguments arguments);
};

}  // namespace redline::jinja
