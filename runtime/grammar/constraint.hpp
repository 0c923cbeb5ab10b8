#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/base/result.hpp"
#include "runtime/copy/program_machine.hpp"
#include "runtime/grammar/machine.hpp"

namespace redline::grammar {

enum class kind : std::uint8_t {
  none,
  copy,  // programs over files
  json,  // values of a JSON schema
  last_,
};

/// A grammar and a place in it, as it travels. Small, so it is sent with every round: whoever lost what it made of it
/// makes it again.
struct constraint {
  kind what = kind::none;
  std::string schema;                // json
  std::vector<std::uint32_t> shape;  // copy: see copy_constraint
  std::vector<std::uint32_t> where;  // the state's cells

  /// The same grammar, wherever in it.
  [[nodiscard]] bool same_grammar(const constraint& o) const {
    return what == o.what && schema == o.schema && shape == o.shape;
  }
  bool operator==(const constraint&) const = default;
  static constexpr auto fields(auto& self) { return std::tie(self.what, self.schema, self.shape, self.where); }
};

inline constexpr std::size_t schema_bytes_max = 32 << 10;

/// As numbers: 1 for line spans, else 0; 1 for token spans and 2 for anchors, added; lines and tokens of each file.
[[nodiscard]] constraint copy_constraint(const copy::program_shape& shape);
[[nodiscard]] constraint json_constraint(std::string schema);

/// Fails when it makes no sense or asks for what we lack; not for `none`. Does not look at `where`.
[[nodiscard]] result<std::shared_ptr<const machine>> compile(const constraint& c);

}  // namespace redline::grammar
