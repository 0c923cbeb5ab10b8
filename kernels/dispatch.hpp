#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/kernel_table.hpp"

namespace redline::kernels {

/// One target in this build; the list is ordered best first.
struct target_info {
  std::string_view name;
  const kernel_table* table = nullptr;  // nullptr if this CPU cannot run it
  std::string_view missing;             // what the CPU lacks; empty if the target runs
};
[[nodiscard]] const std::vector<target_info>& list_targets();

/// A table, or the reason there is none.
struct table_choice {
  const kernel_table* table = nullptr;
  std::string problem;
  bool by_environment = false;  // $REDLINE_TARGET selected it
};

/// The best table for this CPU, or the named one. An unknown name or an unsupported target is a problem, never silently
/// replaced.
[[nodiscard]] table_choice choose_table(std::optional<std::string_view> forced);

/// The choice of this process: $REDLINE_TARGET if it is set and not empty, else the best. Made once, on first use.
[[nodiscard]] const table_choice& process_table();

/// The table for a model whose KV cache stores this type. An f32 cache requests full precision, so it gets a table that
/// rounds no factor of a product. A narrower cache loses as much as bf16 products do.
[[nodiscard]] inline const kernel_table& table_for_cache(const kernel_table& chosen, element_type cache) {
  return cache == element_type::f32 && chosen.unrounded != nullptr ? *chosen.unrounded : chosen;
}

}  // namespace redline::kernels
